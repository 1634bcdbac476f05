#!/usr/bin/env bash
# Sets up .venv like the quickstart, then lints and runs the tests in two processes, except those marked
# long. Arguments go to pytest:
#   launch/test.sh -k score        launch/test.sh -m "not real and not slow"        launch/test.sh -m long
set -euo pipefail
cd "$(dirname "$0")/.."
source launch/environment.sh
ruff check .
ruff format --check .
python -m pytest --numprocesses 2 --dist loadfile -m "not long" "$@"
