#!/usr/bin/env bash
# Run by tpu_vm.sh on each worker of a slice, in the worker's copy of the repository.
#   worker.sh setup lite|google   install into .venv, with jax[tpu] at constraints.txt's version
#   worker.sh start COMMAND...    run the command detached, so that it survives a disconnect
#   worker.sh follow LINES        print the last LINES lines of its log (+1: all) and follow it; exits
#                                 with its exit code, 70 if it was killed, 4 if none was started
#   worker.sh stop                send SIGTERM: t5x saves and exits
#   worker.sh status              print the state in one line
set -euo pipefail
cd "$(dirname "$0")/.."
source launch/common.sh
state=runs/launch/worker
mkdir -p "$state"

running() {
  [ ! -e "$state/exit" ] && [ -s "$state/pid" ] && kill -0 "$(cat "$state/pid")" 2>/dev/null
}

# Removes files that an earlier archive had and this one lacks.
remove_old_files() {
  [ -e ../sgdx_t5x.tar.gz ] && [ ! -d .git ] || return 0
  tar -tzf ../sgdx_t5x.tar.gz | sed 's|^[^/]*/||; /\/$/d' | LC_ALL=C sort > "$state/files.new"
  [ ! -e "$state/files" ] || LC_ALL=C comm -23 "$state/files" "$state/files.new" |
    while IFS= read -r file; do rm -f "$file"; done
  mv "$state/files.new" "$state/files"
}

setup() {
  remove_old_files
  # TPU runtimes ship Python 3.10; JAX needs 3.11. uv installs it without root.
  if [ -z "${PYTHON:-}" ] &&
    ! python3 -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))'; then
    python3 -m pip install --quiet --user uv
    python3 -m uv python install 3.11
    PYTHON="$(python3 -m uv python find 3.11)"
    export PYTHON
  fi
  # shellcheck source=launch/environment.sh
  source launch/environment.sh
  python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
    "jax[tpu]==$(jax_version)" --editable "t5x_lite[gcs]"
  if [ "$1" = google ]; then google_t5x; else rm -f "$state/google"; fi
  python -c 'import jax, t5x; print("ready: JAX", jax.__version__, "and", *t5x.__path__)'
}

# It requires git heads, which would replace the released packages; see benchmarks/README.
google_t5x() {
  mkdir -p google
  local repository
  for repository in google-research/t5x google/airio google-research/jestimator; do
    [ -d "google/${repository#*/}" ] || git -C google clone "https://github.com/$repository"
  done
  git -C google/t5x checkout --quiet cc342d4  # this project's gin files were tested with it
  python -m pip install --quiet --no-deps --upgrade --target google/packages cached_property chex \
    jaxtyping fiddle grain wadler-lindig toolz cloudpickle libcst graphviz portpicker
  touch "$state/google"
  google_path
}
google_path() {
  local top="$PWD/google"
  [ ! -e "$state/google" ] ||
    export PYTHONPATH="$top/t5x:$top/airio:$top/jestimator:$top/packages"
}

start() {
  if running; then
    echo "a command is already running here: $(cat "$state/command")" >&2
    exit 4
  fi
  rm -f "$state/exit" "$state/pid"
  : > "$state/log"
  quoted "$@" > "$state/command"
  setsid bash launch/worker.sh child "$@" </dev/null >/dev/null 2>&1 &
  local tries=0
  until [ -e "$state/pid" ]; do  # the next `follow` must find it
    [ $((tries += 1)) -le 300 ] || { echo "the command did not start within 30 s" >&2; exit 1; }
    sleep 0.1
  done
}

child() {
  echo $$ > "$state/pid.part"  # leader of its own process group, so that `stop` reaches all of it
  mv "$state/pid.part" "$state/pid"
  export PATH="$PWD/.venv/bin:$PATH"
  google_path
  trap : TERM  # the command gets SIGTERM too, and this shell must outlive it
  local status=0
  "$@" > "$state/log" 2>&1 || status=$?
  echo "$status" > "$state/exit.part"
  mv "$state/exit.part" "$state/exit"
}

follow() {
  [ -s "$state/pid" ] || { echo "nothing was started here" >&2; exit 4; }
  # The process may remain a zombie for a while after writing its exit code.
  while running; do sleep 0.2; done &
  tail -n "$1" -F -s 0.2 --pid=$! "$state/log" 2>/dev/null || true
  [ -e "$state/exit" ] || { echo "the command was killed (out of memory?)" >&2; exit 70; }
  exit "$(cat "$state/exit")"
}

status() {
  if running; then
    echo "$(hostname): running $(cat "$state/command")"
  elif [ -e "$state/exit" ]; then
    echo "$(hostname): exited with $(cat "$state/exit"): $(cat "$state/command")"
  elif [ -s "$state/pid" ]; then
    echo "$(hostname): killed (out of memory, or a restart?): $(cat "$state/command")"
  else
    echo "$(hostname): nothing was started"
  fi
}

command="$1"
shift
case "$command" in
  setup | start | child | follow | status) "$command" "$@" ;;
  stop) if running; then kill -TERM -- "-$(cat "$state/pid")"; else status; fi ;;
  *) fail 2 "worker.sh $command is unknown" "setup, start, follow, stop or status" "$0" \
    "$0 status" ;;
esac
