"""Converts T5 and BERT weights between T5X checkpoints and Hugging Face folders.

`read_*` returns a `Weights` with T5X's names, checked against its sizes; `write_*` takes one.
Importing this package imports neither JAX nor safetensors.
"""

from sgdx_t5x.weights.bert_layout import BertSizes
from sgdx_t5x.weights.huggingface import read_huggingface, write_huggingface
from sgdx_t5x.weights.layout import Sizes, Weights
from sgdx_t5x.weights.t5x_checkpoint import read_checkpoint, write_checkpoint
