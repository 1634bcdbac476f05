"""The tasks of perturbed dialogues, for every family that is registered before them."""

import seqio
from task_names import FAMILIES, VARIANTS, unregistered

from sgdx_t5x import tasks
from sgdx_t5x.corpus.variants import ORIGINAL, tagged
from sgdx_t5x.metrics.seqio_metrics import schema_sensitivity
from sgdx_t5x.papers.checkdst import tasks as checkdst_tasks
from sgdx_t5x.prompts import load_format
from sgdx_t5x.tasks import REGISTERED
from sgdx_t5x.tasks.registration import FAMILIES as FAMILIES_BY_NAME

SUFFIXES = [
  *(f"checkdst_{kind}{more}" for kind in ("ned", "pi", "sdi", "vs")
    for more in ("", *(f"_{v}" for v in VARIANTS), "_all_variants")),
  "checkdst", "all_variants_checkdst", "sgd_ned_aug", "sgd_sdi_aug", "ned_aug", "sdi_aug",
]  # fmt: skip


def test_every_family_has_them():
  assert unregistered(FAMILIES, SUFFIXES) == set()
  assert REGISTERED["sample_d3st_checkdst_ned_v3"].format == "d3st"
  assert REGISTERED["t5dst_checkdst_ned_v3"].variants == ("ned+v3",)


def test_families_of_others_have_them_too():
  """Importing the module calls this for each family that is registered before it."""
  family = "mine_d3st"
  own = {"data": "sample", "vocabulary": tasks.sample_vocabulary}
  tasks.register_family("mine_", prompt_format=load_format("d3st"), **own)
  try:
    checkdst_tasks._register_family(family)
    assert "mine_d3st_checkdst_sdi_v5" in REGISTERED
  finally:  # other tests list what is registered
    for name in [name for name in REGISTERED if name.startswith("mine_")]:
      registry = seqio.MixtureRegistry if REGISTERED[name].mixture else seqio.TaskRegistry
      registry.remove(name)
      del REGISTERED[name]
    del FAMILIES_BY_NAME[family]


def test_a_task_of_several_variants_has_the_metrics_of_one_without_perturbation():
  """Regression: ned, the original schema, was one of the reworded ones that the mean is over."""
  metrics = []
  for kinds in ((), ("ned",)):
    targets = []
    for variant in (ORIGINAL, *VARIANTS):
      place = f"{tagged(kinds, variant)}/test/1_00000-000-Banks_1/kind"
      facts = {"values": ["x"], "service_slots": 1, "categorical": False, "seen": True}
      targets.append({"id": place, **facts})
    metrics.append(schema_sensitivity(targets, ["x", "x", None, "x", "x", "x"]))
  assert metrics[0] == metrics[1]
  assert (metrics[1]["jga_orig"], metrics[1]["jga_v1_5"]) == (1.0, 0.8)
