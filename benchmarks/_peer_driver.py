"""Runs a peer's T5 on prompts; started by benchmarks/evaluation.py in the peers' environment.

  python _peer_driver.py ENGINE FOLDER PROMPTS OUTPUT MOST_TOKENS

ENGINE is transformers-float32, transformers-bfloat16, ctranslate2-float32 or ctranslate2-int8;
FOLDER holds the model in its layout; PROMPTS is a JSON file with a list of token ids per prompt;
OUTPUT gets the answers in the same format. Prompts of similar length are batched, in the batch
sizes that were fastest here.
"""

from __future__ import annotations

import json
import os
import sys

_EOS, _START = 1, 0


def with_transformers(dtype: str, folder: str, prompts: list[list[int]], most: int, rows: int = 32):
  """Yields (indices, answers) of batches, greedily decoded."""
  import torch
  from transformers import T5ForConditionalGeneration

  torch.set_num_threads(os.cpu_count() or 1)
  model = T5ForConditionalGeneration.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()
  order = sorted(range(len(prompts)), key=lambda i: -len(prompts[i]))
  with torch.inference_mode():
    for start in range(0, len(order), rows):
      part = order[start : start + rows]
      width = len(prompts[part[0]])
      ids = torch.tensor([prompts[i] + [0] * (width - len(prompts[i])) for i in part])
      answers = model.generate(
        input_ids=ids, attention_mask=(ids > 0).long(), max_new_tokens=most, do_sample=False,
        num_beams=1, decoder_start_token_id=_START, eos_token_id=_EOS, pad_token_id=0,
      )  # fmt: skip
      yield part, [_until_end(row[1:]) for row in answers.tolist()]


def with_ctranslate2(dtype: str, folder: str, prompts: list[list[int]], most: int):
  """Yields (indices, answers) of all prompts, greedily decoded."""
  import ctranslate2

  cores = os.cpu_count() or 1
  translator = ctranslate2.Translator(
    folder, device="cpu", compute_type=dtype, intra_threads=cores, inter_threads=1
  )
  with open(os.path.join(folder, "shared_vocabulary.json"), encoding="utf-8") as f:
    pieces = json.load(f)
  numbers = {piece: i for i, piece in enumerate(pieces)}
  found = translator.translate_batch(
    [[pieces[i] for i in prompt] for prompt in prompts],
    beam_size=1, max_decoding_length=most, max_batch_size=4096, batch_type="tokens",
    max_input_length=0, return_end_token=True,
  )  # fmt: skip
  answers = [_until_end([numbers[x] for x in result.hypotheses[0]]) for result in found]
  yield range(len(prompts)), answers


def _until_end(tokens: list[int]) -> list[int]:
  return tokens[: tokens.index(_EOS) + 1] if _EOS in tokens else tokens


def main() -> None:
  """Reads the prompts, answers them, writes the answers in their order."""
  engine, folder, prompts_path, output, most = sys.argv[1:]
  library, dtype = engine.split("-")
  with open(prompts_path, encoding="utf-8") as f:
    prompts = json.load(f)
  run = {"transformers": with_transformers, "ctranslate2": with_ctranslate2}[library]
  answers: list[list[int]] = [[]] * len(prompts)
  for indices, found in run(dtype, folder, prompts, int(most)):
    for i, answer in zip(indices, found, strict=True):
      answers[i] = answer
  with open(output, "w", encoding="utf-8") as f:
    json.dump(answers, f)


if __name__ == "__main__":
  main()
