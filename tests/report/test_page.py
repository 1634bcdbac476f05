"""The page of a report: as text, and opened from disk in Chromium without a network."""

import base64
import hashlib
import html.parser
import re

import pytest
from needs import chromium_program

from sgdx_t5x.report.page import Page, Plot, Section, render, slug, table_files
from sgdx_t5x.tables import Number, Table, percent

HOSTILE = """</script><script>window.hacked=1</script>"'&amp;<img src=x onerror=hacked=1>\u2028"""
SVG = """<svg viewBox="0 0 497 100" role="img" aria-label="JGA of v1: 9.">
<text x="9" y="50">v1</text></svg>"""
SCORES = Table(
  "JGA per service (%)",
  ("service", "JGA"),
  tuple((f"Banks_{n}", percent(x)) for n, x in ((10, None), (2, 0.5), (1, 0.125), (3, 0.9))),
)
LONG = Table(
  "per slot", ("slot", "n"), tuple((f"slot_{n:03d}", Number(n, str(n))) for n in range(60))
)
KINDS = (
  "missed",
  "spurious",
  "wrong value",
  "wrong categorical choice",
  "value of another slot",
)


def frame(run, number, service, slot, kinds, changes, gold=("4",)):
  """A frame whose one failing slot is wrong in the versions of `kinds`: version -> kind."""
  versions = ("original", "v1")
  return {
    "run": run,
    "id": f"1_{number:05d}-002-{service}",
    "dialogue": "1_00000",
    "turn": 2,
    "service": service,
    "scores": {v: 0.0 if v in kinds else 1.0 for v in versions},
    "changes": changes,
    "broken": list(kinds) if run else [],
    "failures": [
      {
        "slot": slot,
        "gold": list(gold),
        "predicted": {v: None if kinds.get(v) == "missed" else "4" for v in versions},
        "kinds": kinds,
      }
    ],
  }


def total(run, service, slot, version, kind, frames, changes):
  names = ("run", "service", "slot", "variant", "kind", "frames", "changes", "broken")
  values = (run, service, slot, version, kind, frames, changes, frames if run else 0)
  return dict(zip(names, values, strict=True))


def browser_data():
  """Run 0: 25 frames of Hotels_4 and 2 of Banks_1 embedded, of 132 + 7 + 3; run 1: one frame."""
  missed = [frame(0, n, "Hotels_4", "star_rating", {"v1": "missed"}, True) for n in range(25)]
  other = [
    frame(0, 25, "Banks_1", "amount", {"original": "spurious", "v1": "spurious"}, False, ()),
    frame(0, 26, "Banks_1", "account", {"original": "wrong value"}, True, ("savings",)),
    frame(1, 0, "Banks_1", "account", {"v1": "wrong value"}, True, ("checking",)),
  ]
  return {
    "runs": ["none", "backtrans"],
    "unknown": [],
    "variants": ["original", "v1"],
    "sets": {},
    "kinds": list(KINDS),
    "megabytes": 10,
    "examples": 25,
    "jsonl": ["errors/none.jsonl", "errors/backtrans.jsonl"],
    "services": {
      "Hotels_4": {
        "seen": False,
        "variants": {
          "original": {"name": "Hotels_4", "slots": {"star_rating": ["star_rating", "Its stars"]}},
          "v1": {"name": "Hotels_41", "slots": {"star_rating": ["hotel_class", "How fine it is"]}},
        },
      },
      "Banks_1": {"seen": True, "variants": {}},
    },
    "dialogues": {
      "1_00000": [
        ["USER", "A room please"],
        ["SYSTEM", "Which?"],
        ["USER", "Four stars"],
        ["SYSTEM", "Later"],
      ]
    },
    "frames": [*missed, *other],
    "totals": [
      total(0, "Hotels_4", "star_rating", "v1", "missed", 132, 120),
      total(0, "Banks_1", "amount", "original", "spurious", 4, 0),
      total(0, "Banks_1", "amount", "v1", "spurious", 3, 0),
      total(0, "Banks_1", "account", "original", "wrong value", 3, 2),
      total(1, "Banks_1", "account", "v1", "wrong value", 1, 1),
    ],
  }


def page(browser=None, **fields):
  plot = Plot("jga-by-variant", "JGA by variant", "n = 802 frames.", SVG)
  return Page(
    **{
      "title": "Two runs",
      "warnings": ("PARTIAL: v2 lacks 12 frames",),
      "sections": (Section("summary", "Summary", ("A line.",), (SCORES, LONG), (plot,)),),
      "signatures": (("none", "sgdx|corpus:sample:2713|" + "v" * 300),),
      "browser": browser,
      "version": "0.1.0",
    }
    | fields
  )


# --- as text -------------------------------------------------------------------------------


class Elements(html.parser.HTMLParser):
  """Collects (tag, attributes), and the text in each <script>."""

  def __init__(self, text):
    super().__init__()
    self.tags, self.scripts = [], []
    self.feed(text)

  def handle_starttag(self, tag, attrs):
    self.tags.append((tag, dict(attrs)))

  def handle_data(self, data):
    if self.tags and self.tags[-1][0] == "script" and self.cdata_elem == "script":
      self.scripts.append(data)


def test_nothing_leaves_the_page_but_links_to_its_files():
  text = render(page(browser_data()))
  found = Elements(text)
  assert "http:" not in text
  assert "https:" not in text
  links = [attributes["href"] for _, attributes in found.tags if "href" in attributes]
  assert {x for x in links if not x.startswith("#")} == {
    *(
      f"tables/{name}.{f}" for name in ("jga-per-service", "per-slot") for f in ("csv", "md", "tex")
    ),
    *(f"plots/jga-by-variant.{f}" for f in ("svg", "pdf", "png")),
    *("errors/none.jsonl", "errors/backtrans.jsonl"),
  }
  ids = {attributes.get("id") for _, attributes in found.tags}
  assert {x[1:] for x in links if x.startswith("#")} <= ids
  assert not [a for _, a in found.tags if {"src", "xlink:href", "action", "srcset"} & set(a)]
  assert not {tag for tag, _ in found.tags} & {"link", "img", "iframe", "object", "form", "base"}
  assert "@import" not in text
  assert "url(" not in text


def test_policy_allows_the_one_script():
  found = Elements(render(page(browser_data())))
  policy = next(a["content"] for _, a in found.tags if "http-equiv" in a)
  digest = base64.b64encode(hashlib.sha256(found.scripts[-1].encode()).digest()).decode()
  assert policy.startswith("default-src 'none';")
  assert f"script-src 'sha256-{digest}';" in policy
  assert "innerHTML" not in found.scripts[-1]


def test_the_tables_are_there_without_javascript():
  text = render(page())
  assert '>Banks_2</th><td class="number" data-value="0.5">50.0</td>' in text
  assert 'data-value="">-</td>' in text
  assert "error-browser" not in {a.get("id") for _, a in Elements(text).tags}


def test_half_a_surrogate_pair_can_be_written():
  data = browser_data()
  data["dialogues"]["1_00000"][0][1] = "half \ud83d"
  assert "half ?" in render(page(data, title="\ud83d")).encode().decode()


@pytest.mark.parametrize(
  ("title", "name"),
  [("JGA, v1-5 (%)", "jga-v1-5"), ("../Café & Co_1", "café-co-1"), ("%", "table")],
)
def test_slug(title, name):
  assert slug(title) == name


def test_files_of_tables_have_names_of_their_own():
  titles = ("Slots: a b", "Slots: A-b", "Slots: a b 2", "x" * 70, "x" * 71, "Slots: a b")
  tables = tuple(Table(title, ("",), ()) for title in titles)
  sections = (Section("a", "", (), tables[:2]), Section("b", "", (), tables[2:]))
  names = ("slots-a-b", "slots-a-b-2", "slots-a-b-2-2", "x" * 60, "x" * 60 + "-2")
  assert table_files(sections) == dict(zip(titles[:5], names, strict=True))


# --- in a browser --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chromium():
  from playwright.sync_api import sync_playwright

  program = chromium_program()
  assert program, "no Chromium on the PATH, but CI must run this test"
  with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
    yield browser
    browser.close()


@pytest.fixture
def opened(chromium, tmp_path):
  """Opens a page from disk, without a network; fails at the end if the console had an error."""
  contexts, errors = [], []

  def open_page(content, **options):
    path = tmp_path / "report.html"
    path.write_bytes(render(content).encode())
    context = chromium.new_context(**options)
    contexts.append(context)
    context.set_offline(True)
    tab = context.new_page()
    tab.set_default_timeout(60_000)  # the machine may be busy
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on("console", lambda m: errors.append(m.text) if m.type in ("error", "warning") else None)
    tab.goto(path.as_uri())
    return tab

  open_page.errors = errors
  yield open_page
  for context in contexts:
    context.close()
  assert errors == []


def column(tab, number):
  return tab.locator(
    f"#summary figure:first-of-type tbody tr > :nth-child({number})"
  ).all_inner_texts()


def test_sorts_tables_both_ways_and_back(opened):
  tab = opened(page())
  heading = tab.locator("th", has_text="JGA").first
  seen = []
  for _ in range(3):
    heading.get_by_role("button").press("Enter")
    seen.append((heading.get_attribute("aria-sort"), column(tab, 2)))
  assert seen == [
    ("descending", ["90.0", "50.0", "12.5", "-"]),
    ("ascending", ["12.5", "50.0", "90.0", "-"]),
    ("none", ["-", "50.0", "12.5", "90.0"]),
  ]
  heading.get_by_role("button").click()
  tab.get_by_role("button", name="service").click()
  assert column(tab, 1) == ["Banks_1", "Banks_2", "Banks_3", "Banks_10"]
  assert heading.get_attribute("aria-sort") == "none"


def test_filters_rows_of_long_tables(opened):
  tab = opened(page())
  tab.get_by_label("Rows with").fill("SLOT_01")
  assert tab.locator(".row-filter").inner_text().endswith("10 of 60 rows")
  assert tab.locator(".long tbody tr:visible").count() == 10
  tab.emulate_media(media="print")
  assert tab.locator(".long tbody tr:visible").count() == 60


STATUS = re.compile(r"Showing (\d+) of (\d+) embedded examples.*; (\d+) such errors? in all")


def numbers(tab):
  """(examples shown, examples found, errors in all), as the page says."""
  return tuple(map(int, STATUS.match(tab.locator(".status").inner_text()).groups()))


def test_error_browser_filters_and_counts(opened):
  tab = opened(page(browser_data()))
  select = {
    name: tab.get_by_label(name, exact=True)
    for name in ("Run", "Service", "Slot", "Variant", "Kind of error", "Frames")
  }
  # Run "none", frames that change: 25 of Hotels_4 and one of Banks_1; 120 + 2 failures.
  assert numbers(tab) == (20, 26, 122)
  assert tab.locator(".card").count() == 20
  tab.get_by_role("button", name="Show 6 more").click()
  assert numbers(tab) == (26, 26, 122)
  assert tab.get_by_role("button", name="more").count() == 0

  select["Frames"].select_option("any")
  assert numbers(tab) == (20, 27, 132 + 4 + 3 + 3)
  select["Service"].select_option("Banks_1")
  assert numbers(tab) == (2, 2, 4 + 3 + 3)
  assert select["Slot"].locator("option").all_inner_texts() == ["all slots", "account", "amount"]
  select["Variant"].select_option("v1")
  assert numbers(tab) == (1, 1, 3)
  assert tab.locator(".card").get_attribute("data-frame") == "1_00025-002-Banks_1"
  select["Variant"].select_option("")
  select["Slot"].select_option("account")
  assert numbers(tab) == (1, 1, 3)
  select["Kind of error"].select_option("missed")
  assert numbers(tab) == (0, 0, 0)
  select["Kind of error"].select_option("")
  select["Run"].select_option("")
  assert numbers(tab) == (2, 2, 3 + 1)
  assert tab.locator(".card", has_text="run backtrans").count() == 1
  select["Service"].select_option("Hotels_4")  # which has no such slot: all slots again
  assert numbers(tab) == (20, 25, 132)


def test_counts_choose_kind_and_version(opened):
  tab = opened(page(browser_data()))
  tab.get_by_label("Frames", exact=True).select_option("any")
  rows = [row.split("\t") for row in tab.locator(".counts table").inner_text().splitlines()]
  assert rows[0] == ["errors", "original", "v1", "all"]
  assert [row[1:] for row in rows[1:4]] == [["0", "132", "132"], ["4", "3", "7"], ["3", "0", "3"]]
  assert rows[-1] == ["all", "7", "135", "142"]
  cell = tab.get_by_role("button", name="4: spurious, original")
  cell.click()
  assert numbers(tab) == (1, 1, 4)
  assert tab.get_by_label("Variant", exact=True).input_value() == "original"
  assert cell.get_attribute("aria-pressed") == "true"
  cell.click()
  assert numbers(tab) == (20, 27, 142)


def test_error_browser_searches(opened):
  tab = opened(page(browser_data()))
  found = {}
  for text in ("four STARS", "later", "savings", "1_00007-", "please which"):
    tab.get_by_label("Text of dialogue or value").fill(text)
    found[text] = numbers(tab)[1]
  # Searches the dialogue up to the frame's turn; "Later" comes after it.
  assert list(found.values()) == [26, 0, 1, 1, 0]
  assert "whatever their text" in tab.locator(".status").inner_text()


def test_a_card_says_what_went_wrong(opened):
  tab = opened(page(browser_data()))
  card = tab.locator(".card").first
  assert card.locator("header").inner_text() == (
    "1_00000-002-Hotels_4\nHotels_4 · unseen · run none"
  )
  assert card.locator(".marks").inner_text().split("\n") == ["original ✓ right", "v1 ✗ wrong"]
  assert card.locator(".turn:visible").all_inner_texts() == ["SystemWhich?", "UserFour stars"]
  card.get_by_text("1 earlier turn").click()
  assert card.locator(".turn:visible").first.inner_text() == "UserA room please"
  rows = [row.all_inner_texts() for row in map(cells, card.locator("tbody tr").all())]
  assert rows == [
    ["original", "4", "4", "✓\u00a0right", "Hotels_4 · star_rating\nIts stars"],
    ["v1", "4", "none", "✗\u00a0missed", "Hotels_41 · hotel_class\nHow fine it is"],
  ]


def cells(row):
  return row.locator("th, td")


def test_a_perturbed_set_has_its_own_words_and_gold_values(opened):
  data = browser_data() | {"sets": {"ned": "v1"}}
  data["variants"].append("ned")
  data["dialogues"]["1_00000"][2].append({"ned": [[False, "Four "], [True, "trass"]]})
  shown, other = data["frames"][:2]
  for frame in (shown, other):
    frame["scores"] |= {"v1": 1.0, "ned": 0.0}
    frame["failures"][0] |= {"kinds": {"ned": "wrong value"}, "predicted": {"ned": "5"}}
  shown["failures"][0]["gold_there"] = {"ned": ["6"]}
  data["totals"].append(total(0, "Hotels_4", "star_rating", "ned", "wrong value", 2, 2))
  tab = opened(page(data))
  assert "below the original’s" in tab.locator("#error-browser > p").inner_text()
  tab.get_by_label("Variant or set", exact=True).select_option("ned")
  assert numbers(tab) == (2, 2, 2)
  first, second = tab.locator(".card").all()
  turns = [turn.inner_text() for turn in first.locator(".turn:visible").all()]
  assert turns == ["SystemWhich?", "UserFour stars", "nedFour trass"]
  assert first.locator("mark").all_inner_texts() == ["trass"]
  rows = [row.all_inner_texts()[:4] for row in map(cells, first.locator("tbody tr").all())]
  assert rows == [
    ["original", "4", "as gold", "✓\u00a0right"],
    ["v1", "4", "as gold", "✓\u00a0right"],
    ["ned", "6", "5", "✗\u00a0wrong value"],
  ]
  # The set was read with the schema of v1.
  assert (
    cells(first.locator("tbody tr").last).last.inner_text().startswith("Hotels_41 · hotel_class")
  )
  assert cells(second.locator("tbody tr").last).all_inner_texts()[1] == "4"
  tab.get_by_label("Text of dialogue or value").fill("TRASS")
  assert numbers(tab) == (2, 2, 2)


def test_a_counterfactual_turn_shows_what_became_of_each_slot(opened):
  data = browser_data() | {"sets": {"coco": "original"}}
  data["variants"].append("coco")
  edit = {
    "parts": [["", "Two stars in "], ["changed", "Rome"], ["", ", at "], ["added", "noon"]],
    "slots": [
      ["changed", "city", "Bari", "Rome"], ["added", "time", None, "noon"],
      ["dropped", "date", "May 1", None], ["kept", "star_rating", "4", "4"],
    ],
  }  # fmt: skip
  first, _, third, _ = data["dialogues"]["1_00000"]
  first += [{}, {"coco": {"parts": [["", "Not of this turn"]], "slots": []}}]
  third += [{}, {"coco": edit}]
  data["frames"][0]["scores"]["coco"] = 0.0
  tab = opened(page(data))
  card = tab.locator(".card").first
  card.get_by_text("1 earlier turn").click()
  turns = [turn.inner_text() for turn in card.locator(".turn:visible").all()]
  assert turns[1:] == ["SystemWhich?", "UserFour stars", "cocoTwo stars in Rome, at noon"]
  marks = [(x.get_attribute("class"), x.inner_text()) for x in card.locator("mark").all()]
  assert marks == [("changed", "Rome"), ("added", "noon")]
  assert card.locator(".edit li").all_inner_texts() == [
    *("changed city: Bari → Rome", "added time: noon"),
    *("dropped date: May 1", "kept star_rating: 4"),
  ]
  for status in ("changed", "added", "dropped", "kept"):
    assert contrast(tab, f".status-{status}", "body") >= 4.5
  tab.get_by_label("Text of dialogue or value").fill("rome, at NOON")
  assert numbers(tab)[1] > 0


def test_error_browser_without_a_corpus_and_with_one_version(opened):
  data = browser_data() | {"dialogues": {}, "variants": ["original"], "runs": ["none"]}
  data["services"] = {name: {"seen": True, "variants": {}} for name in data["services"]}
  data["frames"] = [f for f in data["frames"] if "original" in f["scores"]][25:26]
  data["totals"] = [t for t in data["totals"] if t["variant"] == "original"][:1]
  tab = opened(page(data))
  assert "Not shown: dialogues, slot names and descriptions" in tab.locator("#browser").inner_text()
  assert numbers(tab) == (1, 1, 4)
  for label in ("Run", "Variant", "Frames"):
    assert not tab.get_by_label(label, exact=True).is_visible()
  assert cells(tab.locator(".card tbody tr")).all_inner_texts() == [
    *("original", "not active", "4", "✗\u00a0spurious")
  ]
  cell = tab.get_by_role("button", name="4: spurious, original")
  for kind in ("spurious", ""):  # regression: a second click did not undo the first
    cell.click()
    assert tab.get_by_label("Kind of error", exact=True).input_value() == kind
    assert cell.get_attribute("aria-pressed") == str(kind != "").lower()


def test_two_runs_of_one_version_are_compared(opened):
  """Regression: the only way to frames that one run gets right was hidden."""
  data = browser_data() | {"variants": ["original"]}
  data["frames"] = [f for f in data["frames"] if "original" in f["scores"]]
  data["totals"] = [t for t in data["totals"] if t["variant"] == "original"]
  data["totals"].append(total(1, "Banks_1", "account", "original", "wrong value", 1, 1))
  tab = opened(page(data))
  tab.get_by_label("Frames", exact=True).select_option("right with run none, wrong with another")
  assert tab.get_by_label("Run", exact=True).input_value() == "1"


def test_the_browser_opens_with_errors_of_the_run_it_shows(opened):
  """Regression: another run's frames decided, and it opened with none of 142."""
  data = browser_data()
  for x in (*data["frames"], *data["totals"]):
    x["changes"] *= x["run"]
  assert numbers(opened(page(data)))[0] > 0


def test_a_run_without_frames_is_not_selected(opened):
  data = browser_data() | {"runs": ["none", "bare", "backtrans"], "unknown": [1]}
  for x in (*data["frames"], *data["totals"]):
    x["run"] *= 2
  tab = opened(page(data))
  tab.get_by_label("Frames", exact=True).select_option("right with run none, wrong with another")
  assert tab.get_by_label("Run", exact=True).input_value() == "2"


def test_a_version_that_a_run_lacks_is_not_right(opened):
  data = browser_data()
  data["variants"].append("v2")
  card = opened(page(data)).locator(".card").first
  assert card.locator(".marks").inner_text().endswith("v2 not scored")
  assert card.locator("tbody tr").count() == 2


def test_no_errors_at_all(opened):
  tab = opened(page(browser_data() | {"frames": [], "totals": []}))
  assert tab.locator("#browser").inner_text() == "No slot of any frame is wrong."


def test_text_of_others_stays_text(opened):
  data = browser_data() | {"runs": [HOSTILE, "constructor"]}
  shown = frame(0, 99, HOSTILE, HOSTILE, {"v1": "missed"}, True, (HOSTILE,))
  shown["failures"][0]["predicted"]["v1"] = HOSTILE
  shown["dialogue"] = HOSTILE
  words = {v: {"name": HOSTILE, "slots": {HOSTILE: [HOSTILE, HOSTILE]}} for v in ("original", "v1")}
  data |= {
    "frames": [shown, frame(0, 1, "constructor", "__proto__", {"v1": "missed"}, True)],
    "totals": [total(0, HOSTILE, HOSTILE, "v1", "missed", 1, 1)],
    "dialogues": {HOSTILE: [["USER", HOSTILE]] * 3},
    "services": {HOSTILE: {"seen": True, "variants": words}},
    "jsonl": [f"errors/{HOSTILE}.jsonl"],
  }
  table = Table(HOSTILE, (HOSTILE, "n"), ((HOSTILE, Number(1, HOSTILE)), ("b", HOSTILE)))
  plot = Plot(HOSTILE, HOSTILE, HOSTILE, SVG)
  section = Section("summary", HOSTILE, (HOSTILE,), (table,), (plot,))
  content = page(
    data,
    title=HOSTILE,
    warnings=(HOSTILE,),
    sections=(section,),
    signatures=((HOSTILE, HOSTILE),),
    version=HOSTILE,
    mark=HOSTILE,
  )
  tab = opened(content)
  assert tab.evaluate("typeof window.hacked") == "undefined"
  assert tab.evaluate("[document.scripts.length, document.images.length]") == [2, 0]
  assert tab.evaluate("document.querySelector('h1').textContent") == HOSTILE
  for place in ("title", ".warnings", ".mark", "figcaption", ".card .turn", ".value", "caption"):
    assert HOSTILE in tab.evaluate("x => document.querySelector(x).textContent", place), place
  tab.get_by_label("Service").select_option(HOSTILE)
  assert numbers(tab) == (1, 1, 1)


def test_policy_blocks_scripts_of_a_plot(opened):
  plot = Plot("p", "p", "p", '<svg onload="hacked=1"><script>window.hacked=1</script></svg>')
  tab = opened(page(sections=(Section("s", "s", (), (), (plot,)),)))
  assert tab.evaluate("typeof window.hacked") == "undefined"
  assert tab.locator(".theme").count() == 1  # the page's own script ran
  assert len(opened.errors) == 2
  opened.errors.clear()


def test_fits_a_phone(opened):
  data = browser_data()
  data["dialogues"]["1_00000"][2][1] = "x" * 400
  wide = Table("wide", ("", *(f"column_{n}" for n in range(20))), (("a" * 90, *["1.5"] * 20),))
  section = Section("summary", "w" * 90, ("y" * 400,), (wide, LONG), page().sections[0].plots)
  size = {"width": 360, "height": 740}
  tab = opened(page(data, title="t" * 90, sections=(section,), mark="m" * 90), viewport=size)
  assert tab.evaluate("document.documentElement.scrollWidth") == 360
  box = "document.querySelector('.scroll').{}"
  assert tab.evaluate(box.format("scrollWidth")) > 2 * tab.evaluate(box.format("clientWidth"))


def luminance(rgb):
  """Relative luminance (WCAG 2) of a color such as "rgb(1, 2, 3)"."""
  red, green, blue = (
    c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
    for c in (int(x) / 255 for x in re.findall(r"\d+", rgb))
  )
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(tab, place, ground):
  color = "([x, name]) => getComputedStyle(document.querySelector(x))[name]"
  both = (
    luminance(tab.evaluate(color, [place, "color"])),
    luminance(tab.evaluate(color, [ground, "backgroundColor"])),
  )
  return (max(both) + 0.05) / (min(both) + 0.05)


def test_dark_and_light(opened):
  grounds = []
  for scheme in ("light", "dark"):
    tab = opened(page(browser_data(), mark="NOT COMPARABLE"), color_scheme=scheme)
    for place in ("body", "nav a", ".lead", ".right", ".wrong", ".mark", ".filters label"):
      assert contrast(tab, place, "body") >= 4.5, (scheme, place)
    assert contrast(tab, ".warnings", ".warnings") >= 4.5
    grounds.append(luminance(background(tab)))
    tab.locator(".theme").click()
    grounds.append(luminance(background(tab)))
  light, darkened, dark, lightened = grounds
  assert light == lightened > 0.9
  assert dark == darkened < 0.05


def background(tab):
  return tab.evaluate("getComputedStyle(document.body).backgroundColor")


def test_print_is_light_whole_and_without_controls(opened):
  tab = opened(page(browser_data()), color_scheme="dark")
  tab.locator(".theme").click()
  tab.locator(".theme").click()
  tab.emulate_media(media="print")
  assert background(tab) == "rgb(255, 255, 255)"
  assert tab.locator(".controls").count() >= 4
  assert (
    tab.locator("select:visible, input:visible, .controls:visible, .files:visible").count() == 0
  )
  box = tab.locator(".long")
  assert box.evaluate("x => x.clientHeight >= x.querySelector('table').offsetHeight")


def test_without_javascript(opened):
  tab = opened(page(browser_data()), java_script_enabled=False)
  assert column(tab, 2) == ["-", "50.0", "12.5", "90.0"]
  assert tab.get_by_text("The error browser needs JavaScript").is_visible()
  assert tab.locator("button").count() == 0


def test_every_control_has_a_name_and_every_plot_says_what_it_is(opened):
  tab = opened(page(browser_data()))
  tree = tab.locator("body").aria_snapshot()
  assert not re.findall(
    r"- (?:button|combobox|searchbox|img|link)(?: \[.*)?:?$", tree, re.MULTILINE
  )
  assert 'img "JGA of v1: 9."' in tree
  tab.keyboard.press("Tab")
  assert tab.evaluate("document.activeElement.textContent") == "Skip to the content"
