"""The tasks of perturbed dialogues, for every family that is registered before them."""

from commands import python_code
from task_names import FAMILIES, VARIANTS, unregistered

import sgdx_t5x.papers.checkdst.tasks  # noqa: F401  # registers them
from sgdx_t5x.tasks import REGISTERED

SUFFIXES = [
  *(f"checkdst_{kind}{more}" for kind in ("ned", "pi", "sdi", "vs")
    for more in ("", *(f"_{v}" for v in VARIANTS), "_all_variants")),
  "checkdst", "all_variants_checkdst", "sgd_ned_aug", "sgd_sdi_aug", "ned_aug", "sdi_aug",
]  # fmt: skip


def test_every_family_has_them():
  assert unregistered(FAMILIES, SUFFIXES) == set()
  assert REGISTERED["sample_d3st_checkdst_ned_v3"].format == "d3st"
  assert REGISTERED["t5dst_checkdst_ned_v3"].variants == ("ned+v3",)


def test_families_of_others_have_them_too_if_registered_before():
  code = (
    "from sgdx_t5x import tasks\n"
    "from sgdx_t5x.prompts import load_format\n"
    "own = {'data': 'sample', 'vocabulary': tasks.sample_vocabulary}\n"
    "tasks.register_family('mine_', prompt_format=load_format('d3st'), **own)\n"
    "import sgdx_t5x.papers.checkdst.tasks\n"
    "print([name for name in tasks.REGISTERED if name.startswith('mine_d3st_checkdst')])"
  )
  found = python_code(code)
  assert found.returncode == 0, found.stderr
  assert "'mine_d3st_checkdst_sdi_v5'" in found.stdout
