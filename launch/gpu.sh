#!/usr/bin/env bash
# Runs a t5x command on all NVIDIA GPUs of this machine, or on a Slurm cluster.
#
#   launch/gpu.sh [OPTIONS] -- python -m t5x.train --gin_file=gin/t5dst.gin \
#     --gin.MODEL_DIR="'runs/t5dst'" --tfds_data_dir=data
#
# Sets up .venv with JAX's CUDA wheels (version from constraints.txt; CUDA 13 or
# 12, by the driver). Tracker training runs that name no gin/scale file get
# gin/scale/gpu.gin (those with an encoder, gin/scale/encoders/gpu.gin). One
# process uses all GPUs of a machine.
#   --scale FILE|none   use this scale file, or none
#   --cuda 12|13        CUDA version; default: detected by nvidia-smi (missing on
#                       some login nodes)
#   --dry-run           print the commands without running them
# Slurm: writes runs/slurm/NAME.sbatch and submits it.
#   --slurm             submit one job
#   --seeds 0,1,2       job array over seeds: replaces %SEED% in the command and
#                       sets --gin.RANDOM_SEED
#   --gin_files A,B     job array over gin files: adds --gin_file=FILE before the
#                       command's own and replaces %GIN% by the file's name
#                       without .gin
#   --nodes N           machines per job, one process each (jax.distributed);
#                       default 1
#   --gpus N            GPUs per machine; default 8
#   --time HH:MM:SS --partition NAME --account NAME   as in sbatch
#   --name NAME         job name; default sgdx
#   --sbatch OPTION     any other sbatch option; may be repeated
#
# Two minutes before its time limit, a job gets SIGTERM and t5x saves a
# checkpoint. A preempted job is requeued where the partition allows it. Either
# resumes from MODEL_DIR when restarted.
# Exit codes: 0 ok, 1 failed, 2 usage error.
set -euo pipefail
cd "$(dirname "$0")/.."
source launch/common.sh

options=(--dry-run --scale --cuda --slurm --seeds --gin_files --nodes --gpus --time --partition
  --account --name --sbatch)

parse() {
  wanted_scale="" cuda="" slurm="" seeds=() gin_files=() nodes=1 gpus=8 name=sgdx more=() scale=()
  for_slurm=()
  while [ $# -gt 0 ]; do
    case "$1" in --?*=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;; esac
    case "$1" in
      -h | --help) usage "$0"; exit ;;
      --dry-run) dry_run=yes ;;
      --slurm) slurm=yes ;;
      --) shift; break ;;
      --*)
        [[ " ${options[*]} " == *" $1 "* ]] || fail 2 "$1 is not an option" "the command after --" \
          "${options[*]}" "$0 --help"
        value_of "$1" $#
        [[ "$1" == --scale || "$1" == --cuda ]] || for_slurm+=("$1")
        case "$1" in
          --scale) wanted_scale="$2" ;;
          --cuda) cuda="$2" ;;
          --seeds) IFS=, read -r -a seeds <<< "$2" ;;
          --gin_files) IFS=, read -r -a gin_files <<< "$2" ;;
          --nodes) nodes="$2" ;;
          --gpus) gpus="$2" ;;
          --name) name="$2" ;;
          --time | --partition | --account) more+=("$1=$2") ;;
          --sbatch) more+=("$2") ;;
        esac
        shift ;;
      *) fail 2 "$1 is not an option" "the command after --" "${options[*]}" "$0 --help" ;;
    esac
    shift
  done
  program=("$@")
}

check() {
  local number file
  check_command ${program[@]+"${program[@]}"}
  for file in ${gin_files[@]+"${gin_files[@]}"}; do check_command "--gin_file=$file"; done
  case "$cuda" in "" | 12 | 13) ;; *) fail 2 "--cuda $cuda" "12 or 13" "jax[cuda12], jax[cuda13]" \
    "omit it to detect the version with nvidia-smi" ;; esac
  for number in "$nodes" "$gpus" ${seeds[@]+"${seeds[@]}"}; do
    [[ "$number" =~ ^(0|[1-9][0-9]*)$ ]] || fail 2 "$number is not a whole number" \
      "for example --nodes 2 --seeds 0,1" "$number" "$0 --help"
  done
  [[ "$nodes" != 0 && "$gpus" != 0 ]] || fail 2 "--nodes $nodes --gpus $gpus" \
    "1 or more of each" "$nodes, $gpus" "--nodes 1 --gpus 8"
  [[ "$name" =~ ^[A-Za-z0-9_.-]+$ ]] || fail 2 "--name $name" "letters, digits, _ . and -" "$name" \
    "--name sgdx"
  [[ "${program[*]}" != *%SEED%* || ${#seeds[@]} -gt 0 ]] || fail 2 "%SEED% without --seeds" \
    "the seeds to replace it by" "$(quoted "${program[@]}")" "--slurm --seeds 0,1,2"
  [[ "${program[*]}" != *%GIN%* || ${#gin_files[@]} -gt 0 ]] || fail 2 "%GIN% without --gin_files" \
    "the gin files whose names replace it" "$(quoted "${program[@]}")" "--slurm --gin_files A,B"
  if [ -z "$slurm" ]; then
    [ ${#for_slurm[@]} = 0 ] || fail 2 "${for_slurm[*]} without --slurm" \
      "--slurm with options of Slurm's jobs" "this machine, with all its GPUs, without it" \
      "$0 --slurm ..."
    return
  fi
  check_array
}

# Array jobs that write to the same folder would overwrite each other's checkpoints.
check_array() {
  local folder macro
  [ ${#seeds[@]} = 0 ] || [ ${#gin_files[@]} = 0 ] || fail 2 "--seeds and --gin_files together" \
    "only one of them" "the other set in the command" "submit once per seed, or once per file"
  [ $((${#seeds[@]} + ${#gin_files[@]})) -gt 0 ] || return 0
  local names=(${seeds[@]+"${seeds[@]}"}) file twice
  for file in ${gin_files[@]+"${gin_files[@]}"}; do names+=("$(basename "$file" .gin)"); done
  [ ${#gin_files[@]} = 0 ] || is_t5x "${program[@]}" || fail 2 \
    "--gin_files with a command without t5x" "a t5x command, which gets --gin_file" \
    "$(quoted "${program[@]}")" "-- python -m t5x.train ..."
  twice="$(printf '%s\n' "${names[@]}" | awk 'seen[$0]++ { print; exit }')"
  [ -z "$twice" ] || fail 2 "two jobs of the array are called $twice" \
    "different seeds, or gin files with different names" "${names[*]}" \
    "rename or omit one, or submit them separately"
  local mark="%SEED%"
  [ ${#seeds[@]} -gt 0 ] || mark="%GIN%"
  for macro in MODEL_DIR EVAL_OUTPUT_DIR INFER_OUTPUT_DIR; do
    folder="$(binding_of "$macro" "${program[@]}")"
    [ -z "$folder" ] || [[ "$folder" == *"$mark"* ]] || fail 2 \
      "all jobs of the array would write to $macro = $folder" \
      "a separate folder for each job, by $mark" \
      "$folder" "--gin.$macro=\"'$folder/$mark'\""
  done
}

# Detects `cuda`: CUDA 13 needs driver 580 and compute capability 7.5 (Turing); CUDA 12 needs 525.
ask_driver() {
  [ -z "$cuda" ] || return 0
  local answer driver capability
  command -v nvidia-smi >/dev/null || fail 1 "nvidia-smi is not on PATH" \
    "an NVIDIA driver" "$PATH" \
    "install it; on a login node: --cuda 13 (or 12); without a GPU: launch/cpu.sh"
  answer="$(nvidia-smi --query-gpu=driver_version,compute_cap,name --format=csv,noheader 2>&1)" ||
    fail 1 "nvidia-smi failed: $answer" "a working driver" "$(command -v nvidia-smi)" \
      "reboot, or reinstall the driver"
  driver="${answer%%.*}"
  capability="$(cut -d, -f2 <<< "$answer" | tr -d ' .' | sort -n | sed -n 1p)"
  [[ "$driver" =~ ^[0-9]+$ ]] || fail 1 "nvidia-smi printed no driver version: $answer" \
    "a driver version" "$answer" "--cuda 12"
  [ "$driver" -ge 525 ] || fail 1 "NVIDIA driver $driver is too old" "525 or newer, for CUDA 12" \
    "$answer" "install a newer driver"
  cuda=12
  if [ "$driver" -ge 580 ] && [ "${capability:-0}" -ge 75 ]; then cuda=13; fi
  note "$(wc -l <<< "$answer") GPUs, driver $driver: jax[cuda$cuda]"
}

install() {
  ask_driver
  local wheels
  wheels="jax[cuda$cuda]==$(jax_version)"
  if [ -n "$dry_run" ]; then
    echo "cd $(quoted "$PWD")"
    echo "source launch/environment.sh"
  else
    # shellcheck source=launch/environment.sh
    source launch/environment.sh
    [ "$(cat .venv/installed-gpu 2>/dev/null)" != "$wheels $(cat .venv/installed)" ] || return 0
    say "Installing $wheels (once; 3 GB)"
  fi
  perform python -m pip install --quiet --disable-pip-version-check \
    --constraint constraints.txt "$wheels"
  [ -n "$dry_run" ] || echo "$wheels $(cat .venv/installed)" > .venv/installed-gpu
}

# Prints the sbatch script, with shell variables for %SEED% and %GIN%.
# shellcheck disable=SC2016  # single quotes: for the job's shell
write_job() {
  local words=() word line count=$((${#seeds[@]} + ${#gin_files[@]})) option
  for word in "${program[@]}"; do
    line="$(quoted "$word")"
    # The variable is placed between two quoted parts, so an unquoted word is quoted first.
    [[ "$word" != *%SEED%* && "$word" != *%GIN%* || "$line" == \'* ]] || line="'$line'"
    line="${line//%SEED%/\'\"\$seed\"\'}"
    line="${line//%GIN%/\'\"\$gin\"\'}"
    words+=("$line")
    if [ ${#gin_files[@]} -gt 0 ] && [[ "$word" == t5x.* ]]; then
      words+=('--gin_file="$gin_file"')
    fi
  done
  words+=(${scale[@]+"$(quoted "${scale[@]}")"})
  [ ${#seeds[@]} = 0 ] || words+=('--gin.RANDOM_SEED="$seed"')
  cat <<END
#!/usr/bin/env bash
#SBATCH --job-name=$name
#SBATCH --nodes=$nodes
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=$gpus
#SBATCH --output=runs/slurm/%x-%j.log
#SBATCH --requeue
#SBATCH --signal=TERM@120
END
  [ "$count" = 0 ] || echo "#SBATCH --array=0-$((count - 1))"
  for option in ${more[@]+"${more[@]}"}; do echo "#SBATCH $option"; done
  echo 'set -euo pipefail'
  echo "cd $(quoted "$PWD")"
  {
    echo 'export PATH="$PWD/.venv/bin:$PATH" JAX_PLATFORMS=cuda'
    [ ${#seeds[@]} = 0 ] || echo "seeds=(${seeds[*]})
export seed=\"\${seeds[\$SLURM_ARRAY_TASK_ID]}\""
    [ ${#gin_files[@]} = 0 ] || echo "gin_files=($(quoted "${gin_files[@]}"))
export gin_file=\"\${gin_files[\$SLURM_ARRAY_TASK_ID]}\"
export gin=\"\$(basename \"\$gin_file\" .gin)\""
    if [ "$nodes" -gt 1 ]; then
      echo '# The first machine is the coordinator; a port per job lets jobs share machines.'
      echo 'first="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)"'
      echo 'export coordinator="$first:$((20000 + SLURM_JOB_ID % 20000))"'
      ! is_t5x "${program[@]}" ||
        words+=('--multiprocess_gpu' '--coordinator_address="$coordinator"'
          '--process_count="$SLURM_NNODES"' '--process_index="$SLURM_PROCID"')
    fi
    echo 'job() {'
    printf '  exec'
    printf ' \\\n    %s' "${words[@]}"
    printf '\n}\nexport -f job\nexec srun --kill-on-bad-exit=1 bash -c job\n'
  }
}

submit() {
  local script="runs/slurm/$name.sbatch"
  if [ -n "$dry_run" ]; then
    printf "mkdir -p runs/slurm\ncat > %s <<'END'\n" "$script"
    write_job
    echo END
  else
    command -v sbatch >/dev/null || fail 1 "sbatch is not on PATH" "a Slurm login node" "$PATH" \
      "run it on one; on your own machine: omit --slurm"
    mkdir -p runs/slurm
    write_job > "$script.part"
    mv "$script.part" "$script"
  fi
  perform sbatch "$script" || fail 1 "sbatch rejected $script" "a valid job: see its message above" \
    "nothing was submitted; sinfo lists partitions" \
    "--partition, --account, --time, --sbatch=--OPTION"
}

parse "$@"
check
# A job's own file has settings too.
choose_scale "$wanted_scale" gin/scale/gpu.gin "${program[@]}" \
  ${gin_files[@]+"${gin_files[@]/#/--gin_file=}"}
install
if [ -n "$slurm" ]; then
  submit
else # without JAX_PLATFORMS, JAX falls back to the CPU if it cannot use the GPUs
  finish env JAX_PLATFORMS=cuda "${program[@]}" ${scale[@]+"${scale[@]}"}
fi
