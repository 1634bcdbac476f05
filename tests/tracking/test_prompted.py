"""Trackers of prompt formats: what their answers depend on."""

import types

from sgdx_t5x.prompts.sdt.format import SDT
from sgdx_t5x.prompts.sdt.style import SdtStyle
from sgdx_t5x.prompts.t5dst import T5DST
from sgdx_t5x.tracking.prompted import PromptedTracker


def settings(prompt_format):
  """Of a model that is never run."""
  task = types.SimpleNamespace(how=prompt_format, name="task", format=prompt_format.name)
  vocabulary = types.SimpleNamespace(eos_id=1, tokenizer=None)
  model = types.SimpleNamespace(input_vocabulary=vocabulary)
  given = types.SimpleNamespace(task=task, model=model, settings={"weights": "a"}, lengths={})
  return PromptedTracker(given).settings


def test_demonstrations_are_settings(tmp_path):
  one = '{"service": "A_1", "text": "[user] in rome", "slots": {"city": "rome"}}\n'
  found = []
  for number, text in enumerate((one, one.replace("rome", "oslo"))):
    (tmp_path / f"{number}.jsonl").write_text(text)
    found.append(settings(SDT(SdtStyle(demos=str(tmp_path / f"{number}.jsonl")))))
  assert found[0]["demos"] != found[1]["demos"]
  assert {**found[0], "demos": ""} == {**found[1], "demos": ""}
  assert "demos" not in settings(T5DST())
