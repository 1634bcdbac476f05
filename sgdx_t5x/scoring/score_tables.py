"""The tables of a report of `sgdx score`: for its output, and for the page of `sgdx report`."""

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from sgdx_t5x.tables import Number, Table, count, percent

GROUPS = ("all", "seen", "unseen")  # the row groups of the paper's Table 2


def layout(report: Mapping[str, Any]) -> list[Table]:
  """Returns the tables of a report of `scoring.report`, in percent."""
  tables = [_variants_table("predictions", "jga", report["sgdx"])]
  tables.append(_official_table(report["variants"]))
  for name, rows in report["metrics"].items():
    tables.append(_variants_table(name, name, rows))
  if "ci95" in report["sgdx"]["all"]:
    tables.append(_interval_table("95% intervals", "jga", report["sgdx"]))
    for name, rows in report["metrics"].items():
      if rows["all"]["num_frames"]:
        tables.append(_interval_table(f"{name}, 95% intervals", name, rows))
  tables.append(_variants_table("predict nothing", "jga", report["predict_nothing"]))
  return tables


def absent(report: Mapping[str, Any]) -> Iterator[str]:
  """Yields what the tables could not show, and what it takes."""
  row = report["sgdx"]["all"]
  if row["ss_jga"] is None:
    names = {"jga_orig": "JGA_orig", **{f"jga_v{k}": f"v{k}" for k in range(1, 6)}}
    lacking = ", ".join(name for key, name in names.items() if row[key] is None)
    yield f"JGA_v1-5, Diff_rel and SS_JGA need v1 to v5; not given: {lacking}"
  elif row["jga_orig"] is None:
    yield "Diff_rel needs predictions for the original schemas"


def long_csv(report: Mapping[str, Any]) -> str:
  """Returns all numbers as CSV, a line each, see docs/score-json.md; the tables show some."""
  out = io.StringIO()
  writer = csv.writer(out, lineterminator="\n")
  signature = report["signature"]
  writer.writerow(("metric", "group", "name", "key", "value", "ci95_low", "ci95_high", "signature"))
  for variant, number in report["missing"].items():
    writer.writerow(("num_missing", "overall", "all", variant, number, "", "", signature))
  for variant, groups in report["variants"].items():
    for name, scores in groups.items():
      for key, value in scores.items():
        shown = "" if value is None else value
        writer.writerow((key, "official", name, variant, shown, "", "", signature))
  for metric, rows in {"joint_goal_accuracy": report["sgdx"], **report["metrics"]}.items():
    for group, name, row in _all_rows(rows):
      for key, value in row.items():
        if key != "ci95":
          ends = row.get("ci95", {}).get(key) or ("", "")
          shown = "" if value is None else value
          writer.writerow((metric, group, name, key, shown, *ends, signature))
  return out.getvalue()


def with_interval(row: Mapping[str, Any], key: str) -> Number:
  """Returns a number of a row in percent, with its interval if there is one."""
  number, ends = percent(row[key]), row.get("ci95", {}).get(key)
  if ends is None:
    return number
  return Number(number.value, f"{number} [{percent(ends[0])}, {percent(ends[1])}]", tuple(ends))


# --- parts ---------------------------------------------------------------------------------


def _variants_table(title: str, name: str, rows: Mapping[str, Any]) -> Table:
  keys = {f"{name}_orig": "JGA_orig" if name == "jga" else "orig"}
  keys |= {f"{name}_v{k}": f"v{k}" for k in range(1, 6)}
  keys |= {f"{name}_v1_5": "JGA_v1-5" if name == "jga" else "v1-5", "diff_rel": "Diff_rel"}
  keys[f"ss_{name}"] = "SS_JGA" if name == "jga" else "SS"
  cells = tuple(
    (group, *(percent(rows[group][key]) for key in keys), count(rows[group]["num_frames"]))
    for group in GROUPS
  )
  return Table(f"{title} (%)", ("", *keys.values(), "frames"), cells)


def _official_table(variants: Mapping[str, Any]) -> Table:
  """The official metrics of all services; those that no prediction has are left out."""
  found = {variant: groups["#ALL_SERVICES"] for variant, groups in variants.items()}
  keys = next(iter(found.values()))
  rows = tuple(
    (key, *(percent(scores[key]) for scores in found.values()))
    for key in keys
    if any(scores[key] is not None for scores in found.values())
  )
  return Table("official metrics, all services (%)", ("", *found), rows)


def _interval_table(title: str, name: str, rows: Mapping[str, Any]) -> Table:
  short = "JGA" if name == "jga" else "mean"
  keys = {
    f"{name}_orig": f"{short}_orig",
    f"{name}_v1_5": f"{short}_v1-5",
    "diff_rel": "Diff_rel",
    f"ss_{name}": "SS_JGA" if name == "jga" else "SS",
    f"ss_{name}_exclude": "SS, exclude",
    "zero_mean_share": "wrong in all",
    **{f"cjga_v{k}": f"cJGA_v{k}" for k in range(1, 6)},
    "cjga_all": "cJGA_all",
  }
  lines = []
  for key, heading in keys.items():
    if any(rows[group].get(key) is not None for group in GROUPS):
      lines.append((heading, *(with_interval(rows[group], key) for group in GROUPS)))
  for variant in range(1, 6):  # without all five there is no v1-5: the variants themselves
    key = f"{name}_v{variant}"
    if rows["all"][f"{name}_v1_5"] is None and rows["all"][key] is not None:
      lines.append((f"{short}_v{variant}", *(with_interval(rows[g], key) for g in GROUPS)))
  counts = (count(rows[group]["num_dialogues"]) for group in GROUPS)
  return Table(f"{title} (%)", ("", *GROUPS), (*lines, ("dialogues", *counts)))


def _all_rows(rows: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
  for group in GROUPS:
    yield "overall", group, rows[group]
  for kind in ("domains", "services"):
    for name, row in rows[kind].items():
      yield kind.removesuffix("s"), name, row
