#!/usr/bin/env bash
# Sets up .venv like the quickstart, then lints and runs the tests in two
# processes, except those marked long. Arguments go to pytest:
#
#   launch/test.sh -k score
#   launch/test.sh -m "not real and not slow and not long"
#   launch/test.sh -m long
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in
  -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' launch/test.sh; exit ;;
esac
source launch/environment.sh
# Each project by its own pyproject.toml, the nearest to a file.
ruff check .
ruff format --check .
# Imports (the contracts in pyproject.toml) and types: of t5x_lite where it is, while the other core
# does it for sgdx_t5x in the tree as it would be installed, beside T5X.
(
  cd t5x_lite
  lint-imports --no-logo
  mypy --cache-dir ../.mypy_cache/t5x_lite
  # Else each test process would compile the modules of TensorFlow and JAX.
  python -c "import t5x.train, t5x.infer, sgdx_t5x.tasks" 2>/dev/null || true
) &
rm -rf build/lint
python setup.py --quiet build_py --build-lib build/lint
cp -r t5x_lite/t5x build/lint
(cd build/lint && lint-imports --no-logo --config ../../pyproject.toml)
(cd build/lint && mypy --config-file ../../pyproject.toml --cache-dir ../../.mypy_cache)
wait "$!"
# In file order: the two processes finish together if no slow file comes last.
python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder -m "not long" "$@"
