"""What CoCo's annex adds to the core, see `sgdx_t5x/annexes.py`."""

COMMANDS = {"coco": "sgdx_t5x.papers.coco.commands"}
SUMMARIES = {
  "coco perturb": "counterfactual dialogues: another goal in a turn",
}
PERTURBATIONS = {
  "coco": "users have another goal in the last turn",
  "coco_ori": "its control: the same generator, the original goal",
}
_MAKE = "sgdx coco perturb --corpus FILE --slots {} --out FOLDER"
_EVAL = ("papers/coco", "coco_eval")
RECORDS = {
  **{
    f"coco_{x}": (_MAKE.format(x), *_EVAL, f"t5dst_coco_{x}") for x in ("freq", "neutral", "rare")
  },
  # `sgdx coco perturb` writes the control beside its folder.
  **{
    f"coco_ori_{x}": (_MAKE.format(x), *_EVAL, f"t5dst_coco_ori_{x}")
    for x in ("freq", "neutral", "rare")
  },
  "coco_freq_aug": (
    "sgdx coco perturb --corpus FILE --split train --seed 1 --slots freq --out FOLDER",
    "papers/coco",
    "t5dst_coco_aug",
    "",
  ),
}
