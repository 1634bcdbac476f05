"""`sgdx weights`: converts T5 and BERT weights between Hugging Face and T5X, packs a SpanDST."""

import argparse
import contextlib
import dataclasses
import logging
import os
import pathlib
import shlex
import sys
import time
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli.options import CORPUS, add_allowed_modules, add_command, add_group
from sgdx_t5x.cli.output import folded_command
from sgdx_t5x.cli.paths import add_input, add_output, check_no_inputs, corpus_path
from sgdx_t5x.cli.progress import native_stderr_hidden, progress
from sgdx_t5x.errors import SgdxError, UsageError
from sgdx_t5x.files.locks import lock

if TYPE_CHECKING:
  from sgdx_t5x.weights import BertSizes, Sizes, Weights

_EPILOG = """\
examples:
  hf download google/flan-t5-base --local-dir flan-t5-base
  sgdx weights import --hf flan-t5-base --out weights/flan-t5-base
  sgdx weights export --checkpoint runs/t5dst/checkpoint_50000 --out t5dst-hf \\
    --vocab sentencepiece.model

  sgdx weights pack runs/spandst --out tracker   # then: sgdx track tracker ...

  hf download google-bert/bert-base-cased --local-dir bert-base-cased
  sgdx weights import --hf bert-base-cased --out weights/bert-base-cased
  sgdx weights export --checkpoint runs/spandst/checkpoint_20000 \\
    --config bert-base-cased --vocab bert-base-cased/vocab.txt --out encoder-hf

Models: T5 1.0, T5 1.1, Flan-T5, mT5, BERT (MiniLM too) and MPNet, of any size.
A Hugging Face folder has config.json and safetensors; PyTorch is not needed. A
T5X checkpoint is a folder checkpoint_N; of a tracker with a BERT, the encoder
is exported. Both directions take up to 13 bytes of memory per parameter.
"""
_STEPS = 50_000  # the paper's fine-tuning


def add_parser(subparsers: Any) -> None:
  """Adds `weights import`, `weights export` and `weights pack`."""
  summary = "convert T5 and BERT weights between Hugging Face and T5X"
  verbs = add_group(subparsers, "weights", __doc__, _EPILOG, summary)

  summary = "convert a Hugging Face folder into a T5X checkpoint"
  command = add_command(verbs, "import", f"`sgdx weights import`: {summary}.", _EPILOG, summary)
  text = "folder with config.json and safetensors"
  add_input(command, "--hf", required=True, metavar="DIR", help=text)
  text = "folder for checkpoint_0"
  add_output(command, "--out", required=True, metavar="DIR", help=text, folder=True)
  command.add_argument("--overwrite", action="store_true", help="replace DIR/checkpoint_0")
  command.set_defaults(run=_import)

  summary = "convert a T5X checkpoint into a Hugging Face folder"
  command = add_command(verbs, "export", f"`sgdx weights export`: {summary}.", _EPILOG, summary)
  text = "checkpoint_N, Orbax or legacy layout"
  add_input(command, "--checkpoint", required=True, metavar="DIR", help=text)
  add_output(command, "--out", required=True, metavar="DIR", help="folder to write", folder=True)
  text = (
    "SentencePiece model, or vocab.txt of a BERT with the tokenizer_config.json beside it, "
    "to copy into the folder"
  )
  add_input(command, "--vocab", metavar="FILE", help=text)
  text = "for a BERT: config.json, or its folder, of the model that training started from"
  add_input(command, "--config", metavar="FILE", help=text)
  command.add_argument("--overwrite", action="store_true", help="replace an earlier export")
  command.set_defaults(run=_export)

  summary = "pack a SpanDST on MiniLM into 12 MB, which NumPy alone can run"
  command = add_command(verbs, "pack", f"`sgdx weights pack`: {summary}.", _EPILOG, summary)
  text = "checkpoint_N or its MODEL_DIR; of several, their mean is packed"
  add_input(command, "checkpoints", nargs="+", metavar="CHECKPOINT", help=text)
  add_output(command, "--out", required=True, metavar="DIR", help="new folder", folder=True)
  text = "of a weight (default: 8)"
  command.add_argument("--bits", type=int, choices=(8, 16), default=8, help=text)
  text = f"{CORPUS}: also train what reads the system's acts where none are given (half an hour)"
  add_input(command, "--corpus", help=text, path=corpus_path)
  add_allowed_modules(command)
  command.set_defaults(run=_pack)


def _import(args: argparse.Namespace) -> int:
  from sgdx_t5x.weights import BertSizes, read_huggingface, write_checkpoint
  from sgdx_t5x.weights.t5x_checkpoint import check_checkpoint_free

  with lock(f"{args.out or '.'}/checkpoint_0"):
    folder = check_checkpoint_free(args.out, 0, args.overwrite)  # before minutes of reading
    check_no_inputs(args, [folder])
    with progress("MB") as update:  # one for each task: between them, results are printed
      weights = read_huggingface(args.hf, update)
    _print_read(args.hf, weights)
    with progress("MB") as update, _quiet(args.debug):
      path = write_checkpoint(weights, args.out, 0, args.overwrite, update)
  print(f"written:    {path}")
  state = "freshly initialized Adafactor state"
  if isinstance(weights.sizes, BertSizes):
    state = "no optimizer state; task heads start untrained"
  print(f"            float32, step 0, {state}")
  _print_next(weights.sizes, path, args.hf)
  return 0


def _export(args: argparse.Namespace) -> int:
  from sgdx_t5x.weights import BertSizes, hf_folder, read_checkpoint, write_huggingface

  with lock(args.out):
    check_no_inputs(args, [hf_folder.check_free(args.out, args.overwrite, args.vocab)])
    with progress("MB") as update, _quiet(args.debug):
      weights = read_checkpoint(args.checkpoint, update)
    if isinstance(weights.sizes, BertSizes):
      return _export_encoder(args, weights)
    if args.config:
      raise UsageError(
        f"--config {args.config}: {args.checkpoint} is a T5 checkpoint",
        expected="no --config, since all sizes of a T5 model follow from its arrays",
        fix="leave it out",
      )
    _print_read(f"{args.checkpoint}, step {weights.step}", weights)
    with progress("MB") as update:
      path = write_huggingface(weights, args.out, args.vocab, args.overwrite, update)
  _print_written(path, None if args.vocab else "SentencePiece model")
  if not weights.sizes.tied:
    print("            transformers 5 warns that lm_head is not tied, which is correct")
  print("config:     sizes are taken from the arrays; dropout_rate is T5's default, 0.1")
  print("next:       in Python, with transformers:")
  print(f"  AutoModelForSeq2SeqLM.from_pretrained({str(path)!r})")
  return 0


def _pack(args: argparse.Namespace) -> int:
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.errors import require

  corpus = open_corpus(args.corpus) if args.corpus else None
  with progress("turns") as update, _quiet(args.debug):
    require("seqio", extra="train", why="checkpoints of `t5x.train`")
    from sgdx_t5x.tracking.packing import pack

    share = pack(args.checkpoints, args.out, args.bits, corpus, update, args.allow_module)
  path = pathlib.Path(args.out)
  files = [f"{file.name} ({file.stat().st_size / 1e6:.1f} MB)" for file in sorted(path.iterdir())]
  print(f"written:    {path}, {args.bits} bits: {', '.join(files)}")
  if share is not None:
    print(f"acts:       of {share:.0%} of dev's system turns read without a mistake")
  print(f"next:       sgdx track {shlex.quote(str(path))} --schema FILE")
  return 0


def _export_encoder(args: argparse.Namespace, weights: "Weights") -> int:
  from sgdx_t5x.weights import bert_huggingface

  if not args.config:
    raise UsageError(
      f"{args.checkpoint} contains a BERT encoder, but there is no --config",
      expected="the config.json of the original model; arrays do not contain the number of heads",
      fix="add --config DIR, the folder read by `sgdx weights import`",
    )
  config = bert_huggingface.config_for(args.config, weights.sizes)
  sizes = bert_huggingface.sizes_of(config, pathlib.Path(args.config))
  weights = dataclasses.replace(
    weights, sizes=dataclasses.replace(sizes, pooler=weights.sizes.pooler)
  )
  _print_read(f"{args.checkpoint}, step {weights.step}", weights)
  with progress("MB") as update:
    path = bert_huggingface.write(weights, args.out, config, args.vocab, args.overwrite, update)
  _print_written(path, None if args.vocab else "vocab.txt")
  model = "MPNetModel" if weights.sizes.is_mpnet else "BertModel"
  print("next:       in Python, with transformers:")
  print(f"  {model}.from_pretrained({str(path)!r})")
  return 0


@contextlib.contextmanager
def _quiet(debug: bool) -> Iterator[None]:
  """Keeps the conversion on the CPU, and hides messages of libraries unless `debug`."""
  os.environ.setdefault("JAX_PLATFORMS", "cpu")  # an idle TPU or GPU has nothing to do here
  if not debug:
    logging.getLogger("absl").setLevel(logging.ERROR)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # tasks of Orbax that failed
    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)  # likewise
  show = sys.unraisablehook

  def hook(unraisable: Any) -> None:
    # TensorStore ends writes that Orbax no longer waits for, and calls its event loop, now closed.
    if "Event loop is closed" not in str(unraisable.exc_value):
      show(unraisable)

  with native_stderr_hidden(debug):
    sys.unraisablehook = hook
    try:
      yield
    except SgdxError:
      time.sleep(0.3)  # what Orbax has cancelled still logs errors, which are hidden here
      raise
    finally:
      sys.unraisablehook = show


# --- output --------------------------------------------------------------------------------


def _print_read(origin: str, weights: "Weights") -> None:
  from sgdx_t5x.weights import BertSizes

  sizes = weights.sizes
  if isinstance(sizes, BertSizes):
    family = "MPNet" if sizes.is_mpnet else "BERT"
    layers = f"{sizes.num_layers} layers"
    head_dim, positions = sizes.emb_dim // sizes.num_heads, f", {sizes.max_positions:,} positions"
  else:
    family, head_dim, positions = _family(sizes), sizes.head_dim, ""
    layers = f"{sizes.num_encoder_layers} + {sizes.num_decoder_layers} layers"
  print(f"read:       {origin}")
  print(f"parameters: {weights.num_parameters:,} in {len(weights.arrays)} arrays")
  print(
    f"model:      {family}: {layers} of width {sizes.emb_dim}, {sizes.num_heads} heads of "
    f"{head_dim},"
  )
  print(f"            MLP of {sizes.mlp_dim:,}, {sizes.vocab_size:,} vocabulary rows{positions}")
  for note in weights.notes:
    print(f"note:       {note}")
  sys.stdout.flush()


def _print_written(folder: pathlib.Path, tokenizer: str | None) -> None:
  """Prints what a Hugging Face folder has. Args: tokenizer, the file that it could have, too."""
  print(f"written:    {folder}, float32")
  print(f"            {', '.join(sorted(file.name for file in folder.iterdir()))}")
  if tokenizer:
    print(f"            no tokenizer; --vocab FILE adds its {tokenizer}")


def _family(sizes: "Sizes") -> str:
  if sizes.gated != sizes.tied:
    return "T5 1.1 or Flan" if sizes.gated else "T5 1.0"
  return f"T5 with {'gated gelu' if sizes.gated else 'relu'}, logits " + (
    "tied to the embedding" if sizes.tied else "not tied"
  )


def _print_next(sizes: "Sizes | BertSizes", checkpoint: pathlib.Path, source: str) -> None:
  """Prints the gin settings that a checkpoint of `source` needs, and a command that trains it."""
  from sgdx_t5x.weights import BertSizes, gin_files

  is_encoder = isinstance(sizes, BertSizes)
  file, own_file = gin_files.file_of(sizes), "ENCODER.gin" if is_encoder else "MODEL.gin"
  if file is None:
    print(f"gin:        no file in gin/models has these sizes; save this as {own_file}:\n")
    print(f"{gin_files.bindings(sizes)}\n")
  else:
    print(f"gin:        {file or 'gin/t5dst.gin alone'} has these sizes")
  tracker = "spandst" if is_encoder else "t5dst"
  command = ["python", "-m", "t5x.train", f"--gin_file=gin/{tracker}.gin"]
  if file != "":  # else the tracker's own gin file has these sizes
    command.append(f"--gin_file={file or own_file}")
  folder = pathlib.Path(source).resolve()
  if is_encoder:
    print("next:       the span tracker on this encoder")
    command.insert(0, f"SGDX_ENCODER={folder}")
  else:
    print(f"next:       {_STEPS:,} steps after the checkpoint's own step 0, as in the paper")
    if file is not None and sizes.vocab_size != gin_files.VOCAB_SIZE:
      command.append(f"--gin.network.T5Config.vocab_size={sizes.vocab_size}")
    command.append(f"--gin.TRAIN_STEPS={_STEPS:_}")
    if (vocabulary := folder / "spiece.model").is_file():
      command.insert(0, f"SGDX_VOCAB={vocabulary}")
  command += [f"--gin.INITIAL_CHECKPOINT_PATH='{checkpoint}'", f"--gin.MODEL_DIR='runs/{tracker}'"]
  print(folded_command([*command, "--tfds_data_dir=data"], "  "))
