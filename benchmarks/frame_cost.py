"""Times what a frame's answers cost: SpanDST on MiniLM's sizes, and a T5DST of as many parameters.

  SGDX_VOCAB=MODEL SGDX_ENCODER=minilm python benchmarks/frame_cost.py --archive sgd.zip

Random weights, frames of SGD's test split, `utils.get_infer_fn` as `t5x.eval` calls it, with
features that are read beforehand. T5DST's network is T5 1.0 with 3 + 2 layers of width 384; since
random weights never end an answer, it decodes 8 tokens (a frame's longest answer has about 10).
A frame is one example of SpanDST and 5.71 of T5DST. Target: SpanDST costs a fifth at most.
"""

from __future__ import annotations

import functools
import sys

import _common
from formats import EXAMPLES_OF_A_FRAME
from train_step import Driver, script

GIN = {
  "t5dst": ("gin/eval.gin", "gin/models/t5_1_0_small.gin"),
  "spandst": ("gin/spandst_eval.gin",),
}
BINDINGS = {
  "t5dst": (
    "MIXTURE_OR_TASK_NAME='t5dst_sgd'",
    "TASK_FEATURE_LENGTHS={'inputs': 512, 'targets': 8}",
    "network.T5Config.emb_dim=384",
    "network.T5Config.num_heads=6",
    "network.T5Config.head_dim=64",
    "network.T5Config.mlp_dim=1536",
    "network.T5Config.num_encoder_layers=3",
    "network.T5Config.num_decoder_layers=2",
    "network.T5Config.dtype='float32'",
  ),
  "spandst": ("MIXTURE_OR_TASK_NAME='spandst_sgd'",),
}
BOTH = ("CHECKPOINT_PATH='unused'", "EVAL_OUTPUT_DIR='unused'")


def main() -> None:
  """Starts the drivers, measures, prints the table."""
  parser = _common.make_parser(__doc__, repeats=3)
  parser.add_argument("--archive", required=True, help="the official SGD archive")
  parser.add_argument("--examples", type=int, default=2048, help="per measurement (2048)")
  args = parser.parse_args()
  data = _common.real_records(args.archive, args.work_dir)
  drivers = {}
  try:
    for name, files in GIN.items():
      command = [sys.executable, script("_answer_driver.py"), str(data), *files, "--"]
      command += [*BOTH, *BINDINGS[name]]
      log = args.work_dir / f"frame_cost_{name}.log"
      drivers[name] = Driver(command, log, _common.environment(EXAMPLES=str(args.examples)))
      print(f"ready  {name}: {drivers[name].about}", flush=True)

    def frames_per_second(name: str) -> float:
      examples = drivers[name].about["examples"]
      return drivers[name].steps_per_second(1) * examples / EXAMPLES_OF_A_FRAME[name]

    columns = {name: functools.partial(frames_per_second, name) for name in drivers}
    results = _common.interleave(columns, args.repeats)
  finally:
    for driver in drivers.values():
      driver.close()
  _common.print_table(results, "frames/s", "t5dst", 1)


if __name__ == "__main__":
  main()
