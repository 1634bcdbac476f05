"""What CheckDST's annex adds to the core, see `sgdx_t5x/annexes.py`."""

COMMANDS = {"checkdst": "sgdx_t5x.papers.checkdst.commands"}
SUMMARIES = {
  "checkdst perturb": "perturb what users say: names, words, values",
  "checkdst verify": "compare a perturbed corpus with its original",
  "checkdst check": "check a tracker on perturbed dialogues",
  "checkdst diff": "compare two checks: differences, intervals",
  "checkdst rows": "CheckDST's numbers for its own files",
}


_TASKS = "sgdx_t5x.papers.checkdst.tasks"


def _test_set(kind: str) -> tuple[str, str, str, str]:
  make = f"sgdx checkdst perturb {kind} --corpus FILE --out FOLDER"
  return make, "gin/{}eval.gin", f"t5dst_checkdst_{kind}", _TASKS


def _train_copy(options: str, mixture: str) -> tuple[str, str, str, str]:
  make = f"sgdx checkdst perturb {options} --corpus FILE --split train --seed 1 --out FOLDER"
  return make, "gin/{}t5dst.gin", mixture, _TASKS


PERTURBATIONS = {
  "ned": "named entities are replaced by unseen strings",
  "pi": "users say the same in other words",
  "sdi": "users speak disfluently",
  "vs": "values become others of the same slot",
}
REPORT_OPTIONS = {"checkdst": "sgdx_t5x.papers.checkdst.commands"}
REPORT_SECTIONS = {"checkdst": "sgdx_t5x.papers.checkdst.report_section"}
RECORDS = {
  **{kind: _test_set(kind) for kind in PERTURBATIONS},
  "ned_aug": _train_copy("ned --entities names", "t5dst_ned_aug"),
  "sdi_aug": _train_copy("sdi", "t5dst_sdi_aug"),
}
