#!/usr/bin/env bash
# Measures T5DST and SpanDST on one GPU in under four minutes: README.md beside this.
#
#   benchmarks/gpu/run.sh DATA OUT.json [OPTIONS of measure.py]
#
# DATA is the folder of prepare.py. PYTHON (default python3) has JAX and Flax, PEERS (default PYTHON)
# PyTorch and transformers.
set -euo pipefail
data=$(cd "$1" && pwd) out=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
python=${PYTHON:-python3}
export PYTHONPATH=$root:$root/t5x_lite:$root/benchmarks:$data/packages PYTHONUNBUFFERED=1
status=0
timeout "${LIMIT:-240}" "$python" "$root/benchmarks/gpu/measure.py" "$data" --out "$out" \
  --work-dir "$work/run" --peers "${PEERS:-$python}" "${@:3}" || status=$?
for log in "$work"/run/*.log; do
  if grep -q Traceback "$log"; then
    echo "--- ${log##*/}"
    tail -n 12 "$log"
  fi
done
rm -rf "$work"
exit "$status"
