"use strict";
// Everything shown is set as text, never parsed as HTML: it comes from the files of others.

const CARDS = 20; // shown at once

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// A service may be called "constructor".
function own(object, key) {
  return object && Object.hasOwn(object, key) ? object[key] : undefined;
}

// What is too wide for a phone; the keyboard can scroll it too.
function scrollBox(kind, label, ...children) {
  const attributes = { class: `scroll ${kind}`, tabindex: "0", role: "group", "aria-label": label };
  return el("div", attributes, ...children);
}

function addThemeToggle() {
  const root = document.documentElement;
  const preferred = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : preferred.matches);
  const button = el("button", { type: "button", class: "theme controls" });
  const label = () => { button.textContent = isDark() ? "Light colours" : "Dark colours"; };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    label();
  });
  preferred.addEventListener("change", label);
  label();
  document.querySelector("body > header").append(button);
}

// --- tables ---------------------------------------------------------------------------------

// Returns a number, a text, or null for a number that there is not.
function sortKey(cell) {
  const value = cell.dataset.value;
  if (value === undefined) return cell.textContent;
  return value === "" || Number.isNaN(Number(value)) ? null : Number(value);
}

const collator = new Intl.Collator("en", { numeric: true });

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return collator.compare(a, b);
}

function sortRows(rows, column, direction) {
  const keyed = rows.map((row) => [sortKey(row.cells[column]), row]);
  const known = keyed.filter(([key]) => key !== null);
  const sign = direction === "ascending" ? 1 : -1;
  known.sort(([a], [b]) => sign * compare(a, b));
  return [...known, ...keyed.filter(([key]) => key === null)].map(([, row]) => row);
}

// A click sorts one way, the next the other way, the third puts the table's own order back.
function makeSortable(table) {
  const body = table.tBodies[0];
  const original = [...body.rows];
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const numeric = original.some((row) => typeof sortKey(row.cells[column]) === "number");
    const order = ["none", "ascending", "descending"];
    if (numeric) order.push(...order.splice(1, 1));
    const button = el("button", { type: "button" }, ...heading.childNodes);
    if (!button.textContent.trim()) button.setAttribute("aria-label", "name");
    heading.append(button);
    heading.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const direction = order[(order.indexOf(heading.getAttribute("aria-sort")) + 1) % 3];
      for (const other of headings) other.setAttribute("aria-sort", "none");
      heading.setAttribute("aria-sort", direction);
      body.append(...(direction === "none" ? original : sortRows(original, column, direction)));
    });
  });
}

function addRowFilter(box) {
  const rows = [...box.querySelector("tbody").rows];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const input = el("input", { type: "search" });
  const count = el("span", { role: "status", class: "muted" });
  input.addEventListener("input", () => {
    const sought = input.value.trim().toLowerCase();
    rows.forEach((row, i) => { row.hidden = !texts[i].includes(sought); });
    const numShown = rows.filter((row) => !row.hidden).length;
    count.textContent = sought ? `${numShown} of ${rows.length} rows` : "";
  });
  const label = el("label", {}, "Rows with ", input);
  box.before(el("div", { class: "row-filter controls" }, label, count));
}

// --- error browser --------------------------------------------------------------------------

const RIGHT_IN_SOME = "changes";
const BROKEN = "broken"; // right with the first run, wrong with another

// A label in an element of its own: around a select, it would also name all options.
function labelled(label, element) {
  element.id = `browser-${label.replaceAll(" ", "-")}`;
  return el("div", {}, el("label", { for: element.id }, label), element);
}

// Returns {element, box, fill(options)}; the first option, "", stands for all.
function makeSelect(label, all, options) {
  const element = el("select");
  const fill = (names) => {
    const kept = element.value;
    const choices = names.map(([value, text]) => el("option", { value }, text));
    element.replaceChildren(...(all ? [el("option", { value: "" }, all)] : []), ...choices);
    if (names.some(([value]) => value === kept)) element.value = kept;
  };
  fill(options);
  return { element, fill, box: labelled(label, element) };
}

const pairs = (names) => names.map((name) => [name, name]);
const distinct = (values) => [...new Set(values)].sort(collator.compare);

function makeFilters(data, onChange) {
  const broken = data.totals.some((total) => total.broken);
  const services = distinct(data.totals.map((total) => total.service));
  const runs = data.runs.map((name, i) => [String(i), name])
    .filter(([, ], i) => !data.unknown.includes(i));
  const first = Number(runs[0][0]); // the run that is shown first
  const changes = data.totals.some((total) => total.changes && total.run === first) ||
    data.frames.some((frame) => frame.changes && frame.run === first);
  const filters = {
    frames: makeSelect("Frames", "", [
      [RIGHT_IN_SOME, "right with some variants, wrong with others"],
      ["any", "wrong with any variant"],
      ...(broken ? [[BROKEN, `right with run ${data.runs[0]}, wrong with another`]] : []),
    ]),
    run: makeSelect("Run", "all runs", runs),
    service: makeSelect("Service", "all services", pairs(services)),
    slot: makeSelect("Slot", "all slots", []),
    variant: makeSelect(
      Object.keys(data.sets || {}).length ? "Variant or set" : "Variant", "all variants",
      pairs(data.variants),
    ),
    kind: makeSelect("Kind of error", "all kinds", pairs(data.kinds)),
  };
  const text = el("input", { type: "search" });
  filters.text = { element: text, box: labelled("Text of dialogue or value", text) };
  filters.frames.box.className = "wide";
  filters.run.element.value = runs[0][0];
  filters.frames.element.value = changes ? RIGHT_IN_SOME : "any";
  const fillSlots = () => {
    const service = filters.service.element.value;
    const found = data.totals.filter((total) => !service || total.service === service);
    filters.slot.fill(pairs(distinct(found.map((total) => total.slot))));
  };
  fillSlots();
  filters.service.element.addEventListener("input", fillSlots);
  filters.frames.element.addEventListener("input", () => {
    // No frame of the first run is wrong where it is right itself.
    const isFirst = filters.run.element.value === "0";
    const other = runs.find(([number]) => number !== "0");
    if (filters.frames.element.value === BROKEN && isFirst) filters.run.element.value = other[0];
  });
  for (const filter of Object.values(filters)) filter.element.addEventListener("input", onChange);
  filters.run.box.hidden = runs.length < 2;
  filters.variant.box.hidden = data.variants.length < 2;
  filters.frames.box.hidden = data.variants.length < 2 && !broken;
  return filters;
}

function readFilters(filters) {
  const value = (name) => filters[name].element.value;
  return {
    run: value("run") === "" ? null : Number(value("run")),
    service: value("service"),
    slot: value("slot"),
    variant: value("variant"),
    kind: value("kind"),
    changes: value("frames") === RIGHT_IN_SOME,
    broken: value("frames") === BROKEN,
    text: value("text").trim().toLowerCase(),
  };
}

// Returns frame -> whether its dialogue up to its turn, its id or a value has a text.
function makeSearch(data) {
  const dialogues = new Map(); // text in lower case, and where each turn ends in it
  const values = new Map();
  const dialogue = (id) => {
    if (!dialogues.has(id)) {
      let text = "";
      const ends = (own(data.dialogues, id) || []).map(([, said, others, edits]) => {
        const told = Object.values(edits || {}).map((edit) => edit.parts);
        const instead = [...Object.values(others || {}), ...told]
          .map((parts) => parts.map(([, part]) => part).join(""));
        text += [said, ...instead].join("\n").toLowerCase() + "\n";
        return text.length;
      });
      dialogues.set(id, { text, ends });
    }
    return dialogues.get(id);
  };
  const valuesOf = (frame) => {
    if (!values.has(frame)) {
      const found = frame.failures.flatMap((f) => [...f.gold, ...Object.values(f.predicted)]);
      values.set(frame, [frame.id, ...found.filter((x) => x !== null)].join("\n").toLowerCase());
    }
    return values.get(frame);
  };
  return (frame, text) => {
    const { text: said, ends } = dialogue(frame.dialogue);
    const at = said.indexOf(text);
    return (at >= 0 && at + text.length <= ends[frame.turn]) || valuesOf(frame).includes(text);
  };
}

function errorMatches(error, wanted) {
  if (wanted.slot && error.slot !== wanted.slot) return false;
  if (wanted.variant) {
    const kind = own(error.kinds, wanted.variant);
    return kind !== undefined && (!wanted.kind || kind === wanted.kind);
  }
  return !wanted.kind || Object.values(error.kinds).includes(wanted.kind);
}

function frameMatches(frame, wanted, search) {
  return (
    (wanted.run === null || frame.run === wanted.run) &&
    (!wanted.service || frame.service === wanted.service) &&
    (!wanted.changes || frame.changes) &&
    (!wanted.broken || frame.broken.some((v) => !wanted.variant || v === wanted.variant)) &&
    (!(wanted.slot || wanted.variant || wanted.kind) ||
      frame.failures.some((error) => errorMatches(error, wanted))) &&
    (!wanted.text || search(frame, wanted.text))
  );
}

// Returns kind -> variant -> errors, of the run, service, slot and frames that are wanted.
function countErrors(data, wanted) {
  const zeros = () => new Map(data.variants.map((variant) => [variant, 0]));
  const counts = new Map(data.kinds.map((kind) => [kind, zeros()]));
  for (const total of data.totals) {
    if (
      (wanted.run === null || total.run === wanted.run) &&
      (!wanted.service || total.service === wanted.service) &&
      (!wanted.slot || total.slot === wanted.slot)
    ) {
      const row = counts.get(total.kind);
      const count = wanted.changes ? total.changes : wanted.broken ? total.broken : total.frames;
      row.set(total.variant, row.get(total.variant) + count);
    }
  }
  return counts;
}

// Args: kind and variant, "" for all.
function sumCounts(data, counts, kind, variant) {
  const kinds = kind ? [kind] : data.kinds;
  const variants = variant ? [variant] : data.variants;
  return kinds.flatMap((k) => variants.map((v) => counts.get(k).get(v))).reduce((a, b) => a + b, 0);
}

const shown = (number) => number.toLocaleString("en");

// Counts per kind and variant; each is a button that filters by both, and again by neither.
function countsTable(data, counts, wanted, choose) {
  const variants = data.variants.length > 1 ? [...data.variants, ""] : data.variants;
  const kinds = [...data.kinds, ""];
  const cell = (kind, variant) => {
    const count = sumCounts(data, counts, kind, variant);
    const filter = data.variants.length > 1 ? variant : ""; // a single one is never filtered for
    const chosen = kind === wanted.kind && filter === wanted.variant;
    const button = el("button", {
      type: "button",
      "aria-pressed": String(chosen && Boolean(kind || filter)),
      "aria-label": `${shown(count)}: ${kind || "all kinds"}, ${variant || "all variants"}`,
    }, shown(count));
    button.addEventListener("click", () => choose(kind, filter));
    return el("td", { class: "number" }, count ? button : "0");
  };
  const heading = (text) => el("th", { scope: "col", class: "number" }, text || "all");
  const head = el("tr", {}, el("th", { scope: "col" }, "errors"), ...variants.map(heading));
  const rows = kinds.map((kind) =>
    el("tr", {}, el("th", { scope: "row" }, kind || "all"), ...variants.map((v) => cell(kind, v))),
  );
  return el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows));
}

function absent(text) {
  return el("span", { class: "muted" }, text);
}

function valueNode(value) {
  if (value === null || value === undefined) return absent("none");
  return el("span", { class: "value" }, value === "" ? "“”" : value);
}

function scoreMark(variant, score) {
  const text = `${variant} `;
  if (typeof score !== "number") return el("li", { class: "muted" }, text, "not scored");
  if (score === 1) return el("li", { class: "right" }, text, "✓ right");
  return el("li", { class: "wrong" }, text, score === 0 ? "✗ wrong" : `✗ ${score.toFixed(2)}`);
}

// A turn, and what is said in its place in perturbed sets, with the words that differ marked.
function turnNodes([speaker, said, others]) {
  const name = speaker.charAt(0).toUpperCase() + speaker.slice(1).toLowerCase();
  const line = (label, kind, ...texts) => el("p", { class: kind }, el("span", {}, label), ...texts);
  const part = ([isNew, text]) => (isNew ? el("mark", {}, text) : text);
  const instead = Object.entries(others || {})
    .map(([set, parts]) => line(set, "turn instead", ...parts.map(part)));
  return [line(name, "turn", said), ...instead];
}

// What a set of counterfactuals has in place of the frame's own turn: its words, with the values of
// the goal marked, and what became of each slot. Earlier turns are the original's there.
function editNodes([, , , edits]) {
  const part = ([status, text]) => (status ? el("mark", { class: status }, text) : text);
  const slot = ([status, name, before, after]) => {
    const values = { changed: [before, " → ", after], dropped: [before] }[status] || [after];
    const texts = values.map((x) => (x === " → " ? x : valueNode(x)));
    return el("li", {}, el("span", { class: `status-${status}` }, status), ` ${name}: `, ...texts);
  };
  return Object.entries(edits || {}).flatMap(([set, edit]) => [
    el("p", { class: "turn instead" }, el("span", {}, set), ...edit.parts.map(part)),
    el("ul", { class: "edit", "aria-label": `What ${set} tells instead` }, ...edit.slots.map(slot)),
  ]);
}

function dialogueNodes(data, frame) {
  const turns = (own(data.dialogues, frame.dialogue) || []).slice(0, frame.turn + 1);
  const earlier = turns.splice(0, Math.max(0, turns.length - 2));
  const nodes = [...turns.flatMap(turnNodes), ...turns.slice(-1).flatMap(editNodes)];
  if (!earlier.length) return nodes;
  const count = earlier.length === 1 ? "1 earlier turn" : `${earlier.length} earlier turns`;
  return [el("details", {}, el("summary", {}, count), ...earlier.flatMap(turnNodes)), ...nodes];
}

// One row per variant: what the model saw, what it should have said and what it said. Of perturbed
// sets, which have gold values of their own, only those that are wrong.
function slotTable(data, frame, error) {
  const worded = own(own(data.services, frame.service), "variants") || {};
  const hasSchema = Object.keys(worded).length > 0;
  const isShown = (v) =>
    Object.hasOwn(frame.scores, v) && (!own(data.sets, v) || own(error.kinds, v));
  const row = (variant) => {
    const values = own(error.gold_there, variant) || error.gold;
    const gold = values.length ? values.join(" | ") : null;
    const service = own(worded, own(data.sets, variant) || variant);
    const [name, description] = own(service && service.slots, error.slot) || ["", ""];
    const kind = own(error.kinds, variant);
    const schema = service && el(
      "td", { class: "described" }, `${service.name} · ${name}`, el("br"), absent(description),
    );
    return el(
      "tr", {},
      el("th", { scope: "row" }, variant),
      el("td", {}, gold === null ? absent("not active") : valueNode(gold)),
      el("td", {}, Object.hasOwn(error.predicted, variant)
        ? valueNode(error.predicted[variant]) : gold === null ? absent("none") : absent("as gold")),
      el("td", { class: kind ? "wrong" : "right" }, kind ? `✗\u00a0${kind}` : "✓\u00a0right"),
      ...(hasSchema ? [schema || el("td", {}, absent("not known"))] : []),
    );
  };
  const names = ["variant", "gold", "predicted", "result"];
  if (hasSchema) names.push("service · slot, description");
  return scrollBox(
    "slot", error.slot,
    el(
      "table", {},
      el("caption", {}, error.slot),
      el("thead", {}, el("tr", {}, ...names.map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, ...data.variants.filter(isShown).map(row)),
    ),
  );
}

// Args: wanted: what was filtered for comes first.
function card(data, frame, wanted) {
  const seen = own(own(data.services, frame.service), "seen");
  const facts = [
    frame.service,
    ...(seen === undefined ? [] : [seen ? "seen" : "unseen"]),
    ...(data.runs.length > 1 ? [`run ${data.runs[frame.run]}`] : []),
  ];
  return el(
    "article", { class: "card", "data-frame": frame.id },
    el("header", {}, el("h3", {}, frame.id), absent(facts.join(" · "))),
    el("ul", { class: "marks" }, ...data.variants.map((v) => scoreMark(v, own(frame.scores, v)))),
    ...dialogueNodes(data, frame),
    ...[...frame.failures]
      .sort((a, b) => errorMatches(b, wanted) - errorMatches(a, wanted))
      .map((error) => slotTable(data, frame, error)),
  );
}

// What the files that the page was made from lacked.
function missingParts(data) {
  const hasSchemas = Object.values(data.services).some((s) => Object.keys(s.variants).length);
  const lacks = [
    ...(Object.keys(data.dialogues).length ? [] : ["dialogues"]),
    ...(hasSchemas ? [] : ["slot names and descriptions"]),
  ];
  if (!lacks.length) return [];
  const why = "the corpus was not available when this page was generated.";
  return [el("p", { class: "muted" }, `Not shown: ${lacks.join(", ")}; ${why}`)];
}

function statusText(data, wanted, numShown, numFound, numErrors) {
  const chosen = [
    ...(data.runs.length > 1 && wanted.run !== null ? [`run ${data.runs[wanted.run]}`] : []),
    ...[wanted.service, wanted.slot, wanted.variant, wanted.kind].filter((x) => x),
    ...(wanted.changes ? ["right with some variants, wrong with others"] : []),
    ...(wanted.broken ? [`right with run ${data.runs[0]}, wrong with another`] : []),
    ...(wanted.text ? [`with “${wanted.text}”`] : []),
  ];
  const of = chosen.length ? ` (${chosen.join("; ")})` : "";
  const aside = wanted.text ? ", whatever their text" : "";
  const errors = numErrors === 1 ? "such error" : "such errors";
  return `Showing ${shown(numShown)} of ${shown(numFound)} embedded examples${of}; ` +
    `${shown(numErrors)} ${errors} in all${aside}.`;
}

function startBrowser(root, data) {
  root.replaceChildren();
  if (!data.totals.length && !data.frames.length) {
    root.append(el("p", {}, "No slot of any frame is wrong."));
    return;
  }
  const search = makeSearch(data);
  const status = el("p", { class: "status", role: "status" });
  const counts = scrollBox("counts", "Counts");
  const cards = el("div");
  const more = el("button", { type: "button", class: "controls" });
  let found = [];
  let wanted = null;
  let numErrors = 0;

  const showMore = () => {
    const next = found.slice(cards.childElementCount, cards.childElementCount + CARDS);
    cards.append(...next.map((frame) => card(data, frame, wanted)));
    const left = found.length - cards.childElementCount;
    more.hidden = left === 0;
    more.textContent = `Show ${Math.min(left, CARDS)} more`;
    const numShown = cards.childElementCount;
    status.textContent = statusText(data, wanted, numShown, found.length, numErrors);
  };
  const update = () => {
    wanted = readFilters(filters);
    found = data.frames.filter((frame) => frameMatches(frame, wanted, search));
    const counted = countErrors(data, wanted);
    numErrors = sumCounts(data, counted, wanted.kind, wanted.variant);
    const focused = [...counts.querySelectorAll("button")].indexOf(document.activeElement);
    counts.replaceChildren(countsTable(data, counted, wanted, choose));
    if (focused >= 0) counts.querySelectorAll("button")[focused].focus();
    cards.replaceChildren();
    showMore();
  };
  const choose = (kind, variant) => {
    const again = kind === wanted.kind && variant === wanted.variant;
    filters.kind.element.value = again ? "" : kind;
    filters.variant.element.value = again ? "" : variant;
    update();
  };
  const filters = makeFilters(data, update);
  more.addEventListener("click", showMore);
  const usual = Object.values(filters).map((filter) => filter.element.value);
  const reset = el("button", { type: "button", class: "controls" }, "Reset filters");
  reset.addEventListener("click", () => {
    Object.values(filters).forEach((filter, i) => { filter.element.value = usual[i]; });
    filters.service.element.dispatchEvent(new Event("input"));
  });
  const boxes = Object.values(filters).map((filter) => filter.box);
  root.append(
    ...missingParts(data),
    el("div", { class: "filters controls", role: "search", "aria-label": "Errors" }, ...boxes, reset),
    counts, status, cards, more,
  );
  update();
}

addThemeToggle();
document.querySelectorAll("table.sortable").forEach(makeSortable);
document.querySelectorAll(".scroll.long").forEach(addRowFilter);
const embedded = document.getElementById("browser-data");
if (embedded) startBrowser(document.getElementById("browser"), JSON.parse(embedded.textContent));
