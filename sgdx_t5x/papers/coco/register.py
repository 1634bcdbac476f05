"""What CoCo's annex adds to the core, see `sgdx_t5x/annexes.py`."""

import itertools

COMMANDS = {"coco": "sgdx_t5x.papers.coco.commands"}
SUMMARIES = {
  "coco perturb": "counterfactual dialogues: another goal in a turn",
}
COUNTERFACTUAL_KIND, CONTROL_KIND = "coco", "coco_ori"
PERTURBATIONS = {
  COUNTERFACTUAL_KIND: "users have another goal in the last turn",
  CONTROL_KIND: "its control: the same generator, the original goal",
}
COUNTERFACTUALS = {COUNTERFACTUAL_KIND: CONTROL_KIND}
_MAKE = "sgdx coco perturb --corpus FILE --slots {} --out FOLDER"
_TASKS = "sgdx_t5x.papers.coco.tasks"
RECORDS: dict[str, tuple[str, ...]] = {}
for _set, _slots in itertools.product(PERTURBATIONS, ("freq", "neutral", "rare")):
  _name, _command = f"{_set}_{_slots}", _MAKE.format(_slots)
  if _set == CONTROL_KIND:
    _command += "  # these are in FOLDER_ori"
  RECORDS[_name] = (_command, "gin/{}eval.gin", f"t5dst_{_name}", _TASKS)
RECORDS["coco_freq_aug"] = (
  "sgdx coco perturb --corpus FILE --split train --seed 1 --slots freq --out FOLDER",
  "gin/{}t5dst.gin",
  "t5dst_coco_aug",
  _TASKS,
)
