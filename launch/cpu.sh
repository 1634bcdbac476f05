#!/usr/bin/env bash
# Runs a t5x command (or any other) on this machine's CPU: sets up .venv, adds
# gin/scale/cpu.gin.
#
#   launch/cpu.sh [--dry-run] [--scale FILE|none] -- \
#     python -m t5x.train --gin_file=gin/t5dst.gin \
#     --gin.MODEL_DIR="'runs/t5dst'" --tfds_data_dir=data
#
# Tracker training runs that name no gin/scale file get cpu.gin last (those with
# an encoder, gin/scale/encoders/cpu.gin); the sample has its own settings.
set -euo pipefail
cd "$(dirname "$0")/.."
source launch/common.sh

wanted_scale="" scale=()
while [ $# -gt 0 ]; do
  case "$1" in
    --dry-run) dry_run=yes ;;
    --scale) value_of "$1" $#; wanted_scale="$2"; shift ;;
    --scale=*) wanted_scale="${1#*=}" ;;
    -h | --help) usage "$0"; exit ;;
    --) shift; break ;;
    *) fail 2 "$1 is not an option" "the command after --" "--dry-run, --scale" "$0 --help" ;;
  esac
  shift
done
check_command "$@"
choose_scale "$wanted_scale" gin/scale/cpu.gin "$@"

if [ -n "$dry_run" ]; then
  echo "cd $(quoted "$PWD")"
  echo "source launch/environment.sh"
else
  # shellcheck source=launch/environment.sh
  source launch/environment.sh
fi
finish env JAX_PLATFORMS=cpu "$@" ${scale[@]+"${scale[@]}"}
