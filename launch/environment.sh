# shellcheck shell=bash
# Creates .venv with the project, t5x_lite and the test tools; sourced by the other scripts.

say() { printf '\n\033[1m%s\033[0m\n' "$*" >&2; }
[ -t 2 ] || say() { printf '\n%s\n' "$*" >&2; }

python="${PYTHON:-}"
candidates=(python3.11 python3.12 python3.13 python3)
[ -z "$python" ] || candidates=("$python")
for candidate in "${candidates[@]}"; do
  # TensorFlow Text, at the version of constraints.txt, has no builds for 3.14.
  if command -v "$candidate" >/dev/null &&
    "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
    python="$candidate"
    break
  fi
  python=""
done
if [ -z "$python" ]; then
  echo "no Python 3.11, 3.12 or 3.13 found" >&2
  echo "  expected:  one of these, with which all pinned packages can be installed" >&2
  echo "  available: $("${PYTHON:-python3}" --version 2>&1)" >&2
  echo "  fix:       install it, or set its path: PYTHON=/path/to/python3.12 $0" >&2
  exit 1
fi

# Reinstall only if the requirements have changed.
wanted="$(cat pyproject.toml setup.py t5x_lite/pyproject.toml constraints.txt | cksum)"
if [ "$(cat .venv/installed 2>/dev/null)" != "$wanted" ]; then
  say "Installing into .venv (once; 1 to 3 minutes, 2 GB)"
  # An attempt that failed or was interrupted leaves a Python without pip.
  if ! .venv/bin/python -m pip --version >/dev/null 2>&1 && ! "$python" -m venv .venv; then
    echo "  fix:       install the venv module (Debian: apt-get install python3-venv)" >&2
    exit 1
  fi
  # Only modules that are imported need compiling, which Python does.
  pip_install=(.venv/bin/python -m pip install --quiet --quiet --disable-pip-version-check
    --no-compile --constraint constraints.txt)
  packages=(--editable ".[train,test]" --editable t5x_lite)
  # uv takes a quarter of pip's time, but knows of pip's settings only the index that it is told.
  index="$(.venv/bin/python -m pip config list 2>/dev/null |
    sed -nE "s/^[^=]*\.index-url='(.*)'$/\1/p" | tail -n 1 || true)"
  if ! { "${pip_install[@]}" uv && ${index:+env "UV_DEFAULT_INDEX=$index"} \
    .venv/bin/uv pip install --quiet --python .venv/bin/python --constraint constraints.txt \
    "${packages[@]}"; }; then
    say "Installing with pip instead of uv"
    "${pip_install[@]}" --upgrade pip
    "${pip_install[@]}" "${packages[@]}"
  fi
  echo "$wanted" > .venv/installed
fi
export PATH="$PWD/.venv/bin:$PATH"
# Otherwise, page faults take a tenth of a training step on a CPU, and up to a fifth of the tests
# (docs/backends.md#memory-on-a-cpu).
if [[ "${GLIBC_TUNABLES:-}" != *glibc.malloc.hugetlb=* ]]; then
  export GLIBC_TUNABLES="${GLIBC_TUNABLES:+$GLIBC_TUNABLES:}glibc.malloc.hugetlb=1"
fi
# Many containers set PYTHONDONTWRITEBYTECODE, with which every process compiles TensorFlow and JAX
# again: 7 of 11 s of imports. Compiled modules in .venv do not litter the source folders either.
if [ -n "${PYTHONDONTWRITEBYTECODE:-}" ]; then
  unset PYTHONDONTWRITEBYTECODE
  export PYTHONPYCACHEPREFIX="${PYTHONPYCACHEPREFIX:-$PWD/.venv/pycache}"
fi
