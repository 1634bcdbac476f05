#!/usr/bin/env bash
# Runs the studies of docs/study.md: trains a tracker with original,
# back-translated, v1-v5 (oracle) and corrupted schemas for the same number of
# steps, and evaluates on the original schemas and v1-v5.
#
#   launch/study.sh --archive sgd.zip
#   launch/study.sh --archive sgd.zip --tracker spandst --encoder minilm
#   launch/study.sh --archive sgd.zip --encoder minilm --arms none,backtrans
#
#   --archive FILE      the official archive (zip), or its folder
#   --out DIR           output folder (default: runs/study); rerun to resume
#   --tracker NAME      t5dst, or spandst, which needs --encoder (default: t5dst)
#   --encoder DIR       pretrained encoder in Hugging Face's layout, trained with
#                       the tracker, which `sgdx track` then evaluates;
#                       launch/minilm.sh DIR fetches MiniLM
#   --arms A,B          any of none,backtrans,oracle,corrupt (default: all four),
#                       paraphrase (five), paraphrase_3, paraphrase_15,
#                       reworded (back-translations and five paraphrases);
#                       for spandst also scratch: like none, without pretraining
#   --seeds 0,1         seeds to train each arm with (default: 0)
#   --dialogues SPEC    size of random samples of dev and test, or "all"
#                       (default: dev=100,test=400)
#   --jobs N            arms to run in parallel, each on its share of the cores
#                       (default: 1)
#   --skip A,B          stages to skip, of train,eval,score,report
#   --overfit           only run the sanity check: overfit 200 training dialogues
#                       (95% JGA; spandst 97%)
#   --dry-run           print the commands without running them
# Other sizes: the default is a T5DST of 0.9 million parameters trained from
# scratch on a CPU; with --encoder, a T5DST (32.5 million) or a SpanDST (24.3
# million) on MiniLM.
#   --model FILE        gin file of the model, given after the arm's file or
#                       gin/eval.gin (default: gin/study/model.gin; with
#                       --encoder gin/models/minilm_t5.gin; spandst:
#                       gin/models/minilm.gin)
#   --train FILE        gin file of steps, batch and hardware, given last
#                       (default: gin/study/train.gin; with --encoder
#                       gin/study/t5dst_minilm.gin; spandst:
#                       gin/study/spandst.gin)
#   --vocabulary FILE   SentencePiece model of t5dst (default: trained on the
#                       archive's train split); T5's checkpoints need T5's
# For example, T5 1.1 Base from its checkpoint, on GPUs:
#   launch/study.sh --archive FILE --out runs/study_base --seeds 0,1,2 \
#     --dialogues all --train gin/scale/gpu.gin \
#     --model gin/models/t5_1_1_base.gin --vocabulary sentencepiece.model
#
# DIR/results then holds scores, gin configurations, versions, checksums and the
# report.
set -euo pipefail
cd "$(dirname "$0")/.."
source launch/common.sh

arms=(none backtrans oracle corrupt) seeds=(0) skip=() archive="" out=runs/study jobs=1
dialogues=dev=100,test=400 train="" model="" vocabulary="" tracker=t5dst encoder=""
overfit=""
options=(--archive --out --tracker --encoder --arms --seeds --dialogues --jobs --skip --train
  --model --vocabulary --overfit --dry-run)
stages=(train eval score report) trackers=(t5dst spandst)
variants=(original v1 v2 v3 v4 v5)

parse() {
  while [ $# -gt 0 ]; do
    case "$1" in --?*=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;; esac
    case "$1" in
      -h | --help) usage "$0"; exit ;;
      --dry-run) dry_run=yes; shift; continue ;;
      --overfit) overfit=yes; shift; continue ;;
    esac
    [[ " ${options[*]} " == *" $1 "* ]] || fail 2 "$1 is not an option" "an option of $0" \
      "${options[*]}" "$0 --help"
    value_of "$1" $#
    case "$1" in
      --archive) archive="$2" ;;
      --out) out="$2" ;;
      --tracker) tracker="$2" ;;
      --encoder) encoder="$2" ;;
      --arms) IFS=, read -r -a arms <<< "$2" ;;
      --seeds) IFS=, read -r -a seeds <<< "$2" ;;
      --dialogues) dialogues="$2" ;;
      --jobs) jobs="$2" ;;
      --skip) IFS=, read -r -a skip <<< "$2" ;;
      --train) train="$2" ;;
      --model) model="$2" ;;
      --vocabulary) vocabulary="$2" ;;
    esac
    shift 2
  done
}

check() {
  local word twice
  [ -e "$archive" ] || fail 2 "--archive ${archive:-is missing}${archive:+ does not exist}" \
    "the official SGD archive (zip), or its folder" \
    "$(compgen -G '*.zip' | paste -sd' ' | grep . || echo 'no zip file here')" \
    "sgdx data prepare --download fetches it; $0 --archive FILE"
  [[ " ${trackers[*]} " == *" $tracker "* ]] || fail 2 "--tracker $tracker" \
    "a tracker" "${trackers[*]}" "$0 --help"
  if [ -n "$encoder" ] || [ "$tracker" = spandst ]; then
    [ -z "$vocabulary" ] || fail 2 "--vocabulary $vocabulary with an encoder" \
      "the encoder's own vocabulary" "--encoder $encoder" "omit it"
    [ -f "$encoder/vocab.txt" ] || fail 2 "--encoder ${encoder:-is missing}${encoder:+ has no vocab.txt}" \
      "the folder of a pretrained encoder, in Hugging Face's layout" \
      "$(compgen -G '*/vocab.txt' || echo 'none here')" "launch/minilm.sh minilm; --encoder minilm"
    if [ "$tracker" = spandst ]; then
      : "${train:=gin/study/spandst.gin}" "${model:=gin/models/minilm.gin}"
    fi
    : "${train:=gin/study/t5dst_minilm.gin}" "${model:=gin/models/minilm_t5.gin}"
  fi
  : "${train:=gin/study/train.gin}" "${model:=gin/study/model.gin}"
  for word in "${arms[@]}"; do arm_options "$word" >/dev/null; done
  for word in ${skip[@]+"${skip[@]}"}; do
    [[ " ${stages[*]} " == *" $word "* ]] || fail 2 "--skip $word" "stages of the study" \
      "${stages[*]}" "$0 --help"
  done
  for word in "$jobs" "${seeds[@]}"; do
    [[ "$word" =~ ^(0|[1-9][0-9]*)$ ]] || fail 2 "$word is not a whole number" "for example --seeds 0,1 --jobs 2" \
      "$word" "$0 --help"
  done
  [[ ",$dialogues" =~ ^(,all|(,(train|dev|test)=[0-9]+)+)$ ]] || fail 2 "--dialogues $dialogues" \
    "all, or sizes of samples" "splits: train, dev, test" "--dialogues dev=100,test=400"
  for word in "arms: ${arms[*]-}" "seeds: ${seeds[*]-}"; do
    twice="$(tr ' ' '\n' <<< "${word#*: }" | awk 'seen[$0]++ { print; exit }')"
    [ -n "${word#*: }" ] || fail 2 "--${word%: } names none" "one or more" \
      "the default, without it" "omit it"
    [ -z "$twice" ] || fail 2 "--$word" "each once" "$twice twice" "omit one of the two"
  done
  [ "$jobs" -ge 1 ] || fail 2 "--jobs $jobs" "1 or more" "$jobs" "--jobs 1"
  check_command "--gin_file=$train" "--gin_file=$model"
  [ -z "$vocabulary" ] || [ -f "$vocabulary" ] || fail 2 "--vocabulary $vocabulary: no such file" \
    "a SentencePiece model" "the default: one is trained" "omit it, or correct the path"
}

# Prints the options of `t5x.train` that make an arm, one per line.
arm_options() {
  local arms=(none backtrans oracle corrupt paraphrase paraphrase_3 paraphrase_15 reworded)
  local start="$out/encoder/checkpoint_0"
  [ "$tracker" = t5dst ] || arms+=(scratch)
  [[ " ${arms[*]} " == *" $1 "* ]] || fail 2 "--arms $1" "arms of the study" \
    "${arms[*]}" "$0 --help"
  echo "--gin_file=gin/$tracker.gin"
  case "$1" in
    none) ;;
    scratch) start="" ;;
    *) echo "--gin.MIXTURE_OR_TASK_NAME='${tracker}_$1'" ;;
  esac
  [ -n "$encoder" ] || return 0
  if [ -n "$start" ]; then echo "--gin.INITIAL_CHECKPOINT_PATH='$start'"
  else # the whole model gets the learning rate of the other arms' heads
    echo "--gin.INITIAL_CHECKPOINT_PATH=[]"
    echo "--gin.optimizer.bert_adam.times={'': 10.0}"
  fi
}

skips() { [[ " ${skip[*]-} " == *" $1 "* ]]; }

# once MARK COMMAND...: runs a command unless MARK exists, then writes the command to MARK.
once() {
  local mark="$1" command
  shift
  command="$(quoted "$@")"
  if [ -n "$dry_run" ] || [ ! -e "$mark" ]; then
    perform "$@"
    [ -n "$dry_run" ] || echo "$command" > "$mark"
  elif [ "$(cat "$mark")" != "$command" ]; then
    fail 1 "$mark was made by a different command" "$command" "$(cat "$mark")" \
      "use a different --out for different settings, or rm -r $(dirname "$mark")"
  fi
}

# same_input NAME FILE: refuses a file that differs from the one --out was begun with. Runs name it
# by a variable of the environment, so that it is not in the commands that `once` compares.
same_input() {
  local mark="$out/$1.sha256" found
  [ -z "$dry_run" ] || return 0
  found="$(digest "$2" | cut -d' ' -f1)"
  [ -e "$mark" ] || echo "$found" > "$mark"
  [ "$(cat "$mark")" = "$found" ] || fail 1 "$2 is not the $1 that $out was begun with" \
    "SHA-256 $(cat "$mark")" "$found" "pass the same file, or use a different --out"
}

# prepare FOLDER SPEC: writes records of the dialogues that SPEC selects.
prepare() {
  local counts=()
  [ "$2" = all ] || IFS=, read -r -a counts <<< "$2"
  perform sgdx data prepare --corpus "$archive" --data-dir "$1" \
    ${counts[@]+--dialogues "${counts[@]}"}
}

# evaluate RUN SPLIT DATA TASK: predicts with the last checkpoint and scores the predictions.
evaluate() {
  local run="$1" split="$2" name predictions=() variant
  name="$(basename "$run")"
  if [ -z "$encoder" ]; then
    predictions=("all=$run/eval_$split/inference_eval")
    skips eval || answer "$@"
  else
    for variant in "${variants[@]}"; do predictions+=("$variant=$run/eval_$split/$variant"); done
    skips eval || track "$run" "$split"
  fi
  skips score || perform sgdx score --corpus "$archive" --split "$split" --allow-missing \
    --predictions "${predictions[@]}" --json "$out/results/$split/$name.json" \
    --per-frame "$out/results/$split/$name.frames.jsonl"
}

# answer RUN SPLIT DATA TASK: predictions of a T5DST without an encoder.
answer() {
  local run="$1" split="$2" data="$3" task="$4"
  [ -n "$dry_run" ] || [ -e "$run/evaluated_$split" ] || rm -rf "$run/eval_$split/inference_eval"
  once "$run/evaluated_$split" python -m t5x.eval --gin_file=gin/eval.gin --gin_file="$model" \
    --gin.MIXTURE_OR_TASK_NAME="'$task'" --gin.utils.DatasetConfig.split="'$split'" \
    --gin.CHECKPOINT_PATH="'$run/model'" --gin.utils.RestoreCheckpointConfig.mode="'latest'" \
    --gin.EVAL_OUTPUT_DIR="'$run/eval_$split'" --tfds_data_dir="$data"
}

# track RUN SPLIT: predictions of a tracker on an encoder; `sgdx track` resumes where it stopped.
track() {
  local limit=()
  [[ ! ",$dialogues," =~ ,$2=([0-9]+), ]] || limit=(--limit "${BASH_REMATCH[1]}")
  once "$1/evaluated_$2" sgdx track "$1/model" --corpus "$archive" --split "$2" \
    --variant "${variants[@]}" ${limit[@]+"${limit[@]}"} --out "$1/eval_$2"
}

# Prefixes lines as they arrive; sed would buffer 4 kB.
labelled() { local line; while IFS= read -r line; do printf '%s: %s\n' "$1" "$line"; done; }

# arm NAME SEED: trains an arm, evaluates it on dev and test, and scores it.
arm() {
  local run="$out/$1-$2" split options
  [ -n "$dry_run" ] || mkdir -p "$run"
  mapfile -t options <<< "$(arm_options "$1")"
  skips train || once "$run/trained" python -m t5x.train "${options[@]}" --gin_file="$model" \
    --gin_file="$train" --gin.MODEL_DIR="'$run/model'" --gin.RANDOM_SEED="$2" \
    --tfds_data_dir="$out/data"
  for split in dev test; do evaluate "$run" "$split" "$out/data" t5dst_all_variants; done
  [ -n "$dry_run" ] || cp "$run/model/config.gin" "$out/results/$1-$2.gin"
}

# worker I: runs every jobs-th arm, starting with the I-th, on its share of the cores.
worker() {
  local i=0 k each name seed allowed=() share=()
  if [ "$jobs" -gt 1 ] && [ -z "$dry_run" ] && command -v taskset >/dev/null; then
    # Those that this process may use, as in a container or under taskset.
    read -ra allowed < <(python -c 'import os; print(*sorted(os.sched_getaffinity(0)))')
    each=$((${#allowed[@]} / jobs > 0 ? ${#allowed[@]} / jobs : 1))
    for ((k = 0; k < each; k++)); do
      share+=("${allowed[($1 * each + k) % ${#allowed[@]}]}")
    done
    taskset -cp "$(IFS=,; echo "${share[*]}")" "$BASHPID" >/dev/null
  fi
  for seed in "${seeds[@]}"; do
    for name in "${arms[@]}"; do
      if [ $((i++ % jobs)) = "$1" ]; then
        say "$name, seed $seed"
        if [ "$jobs" = 1 ]; then arm "$name" "$seed"
        else arm "$name" "$seed" 2>&1 | labelled "$name-$seed"; fi
      fi
    done
  done
}

# On a GPU, JAX takes three quarters of the memory for a process: a second one would find too little.
share_memory() {
  local share
  [ "$jobs" -gt 1 ] || return 0
  share="$(LC_ALL=C awk "BEGIN { print .9 / $jobs }")"
  export XLA_PYTHON_CLIENT_MEM_FRACTION="${XLA_PYTHON_CLIENT_MEM_FRACTION:-$share}"
}

# Runs all workers in parallel. Ctrl-C or SIGTERM stops them: training saves, and a rerun resumes.
work_together() {
  local i failed=0
  workers=()
  share_memory
  set -m # one process group per worker, so that `stop` reaches all of it
  trap 'stop 130' INT
  trap 'stop 143' TERM
  for ((i = 0; i < jobs; i++)); do
    worker "$i" &
    workers+=($!)
  done
  for i in "${workers[@]}"; do ended "$i" || failed=1; done
  trap - INT TERM
  [ "$failed" = 0 ] || fail 1 "an arm failed" "every arm to succeed" "the messages above" \
    "fix the cause and rerun: finished stages are skipped"
}

# Waits until a worker has ended: under `set -m`, wait also returns when it is suspended.
ended() {
  local status
  while :; do
    status=0
    wait "$1" || status=$?
    kill -0 "$1" 2>/dev/null || return "$status"
    sleep 1
  done
}

stop() {
  local i
  trap '' INT TERM
  for i in "${workers[@]}"; do kill -TERM -- "-$i" 2>/dev/null || true; done
  wait
  exit "$1"
}

# Sanity check: trains on 200 dialogues and evaluates on the same ones.
overfit_dialogues() {
  local run="$out/overfit" options least=.95 settings=gin/study/overfit.gin
  dialogues=train=200,dev=1,test=1 variants=(original)
  prepare "$run/data" "$dialogues"
  mapfile -t options <<< "$(arm_options none)"
  if [ "$tracker" = spandst ]; then least=.97 settings=gin/study/spandst_overfit.gin; fi
  once "$run/trained" python -m t5x.train "${options[@]}" --gin_file="$model" --gin_file="$train" \
    --gin_file="$settings" --gin.MODEL_DIR="'$run/model'" --tfds_data_dir="$run/data"
  evaluate "$run" train "$run/data" t5dst_sgd
  [ -z "$dry_run" ] || return 0
  python -c 'import json, sys
jga = json.load(open(sys.argv[1]))["sgdx"]["all"]["jga_orig"]
print(f"JGA on the training dialogues: {100 * jga:.1f}")
sys.exit(jga < float(sys.argv[2]))' "$out/results/train/overfit.json" "$least" ||
    fail 1 "JGA below $least on the training dialogues" "a model that overfits them" "$run/model" \
      "find the defect before running the study"
}

# Writes the report of all arms and seeds, without dialogues, so that it can be published.
report() {
  local named=() name seed
  for name in "${arms[@]}"; do
    for seed in "${seeds[@]}"; do
      named+=("$name${seeds[1]+#$seed}=$out/results/test/$name-$seed.json")
    done
  done
  perform sgdx report "${named[@]}" --corpus "$archive" --examples 0 --out "$out/results/report"
}

# Writes about.txt (provenance of the results) and SHA256SUMS.
describe() {
  {
    echo "commit: $(git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)"
    echo "machine: $(uname -sm), $(nproc) cores$(grep -m1 'model name' /proc/cpuinfo | sed 's/.*:/,/')"
    echo "archive: $(digest "$archive")"
    if [ -z "$encoder" ]; then echo "vocabulary: $(digest "$vocabulary")"
    elif [ "${arms[*]}" != scratch ]; then echo "encoder: $(digest "$encoder/model.safetensors")"; fi
    echo "dialogues: $dialogues"
    python --version
    python -m pip list --format freeze --disable-pip-version-check |
      grep -E '^(flax|jax|jaxlib|numpy|optax|sentencepiece|seqio|sgdx_t5x|t5x|tensorflow)=='
  } > "$out/results/about.txt"
  (cd "$out/results" && find . -type f ! -name 'SHA256SUMS*' | sort | while IFS= read -r file; do
    digest "$file"
  done) > "$out/results/SHA256SUMS.new"
  mv "$out/results/SHA256SUMS.new" "$out/results/SHA256SUMS"
  say "Results: $out/results (report/report.html, scores in dev/ and test/, about.txt)"
}

# macOS has no sha256sum. A folder gets no digest: the scores' signatures contain its checksum.
digest() {
  if [ -d "$1" ]; then echo "folder $1"
  elif command -v sha256sum >/dev/null; then sha256sum "$1"
  else shasum -a 256 "$1"; fi
}

# What T5DST reads besides records: a vocabulary.
vocabulary_inputs() {
  if [ -z "$vocabulary" ]; then
    vocabulary="$out/vocabulary.model"
    [ -e "$vocabulary" ] || perform sgdx data vocabulary --corpus "$archive" --out "$vocabulary"
  fi
  same_input vocabulary "$vocabulary"
  export SGDX_VOCAB="$vocabulary"
  [ -z "$dry_run" ] || echo "export SGDX_VOCAB=$(quoted "$vocabulary")"
}

# What a tracker on an encoder reads besides records: the encoder, as a checkpoint to start from.
encoder_inputs() {
  local setting="SGDX_ENCODER=$encoder"
  [ "$tracker" = spandst ] || setting="SGDX_VOCAB=$encoder/vocab.txt"
  same_input vocabulary "$encoder/vocab.txt"
  [ ! -f "$encoder/model.safetensors" ] || same_input encoder "$encoder/model.safetensors"
  export "${setting?}"
  [ -z "$dry_run" ] || echo "export $(quoted "$setting")"
  { [ "${arms[*]}" = scratch ] && [ -z "$overfit" ]; } || [ -e "$out/encoder/checkpoint_0" ] ||
    perform sgdx weights import --hf "$encoder" --out "$out/encoder"
}

main() {
  parse "$@"
  check
  if [ -n "$dry_run" ]; then
    echo "cd $(quoted "$PWD")"
    echo "source launch/environment.sh"
  else
    # shellcheck source=launch/environment.sh
    source launch/environment.sh
    mkdir -p "$out/results/train" "$out/results/dev" "$out/results/test"
  fi
  say "Records and vocabulary"
  [ -n "$overfit" ] || prepare "$out/data" "$dialogues"
  if [ -n "$encoder" ]; then encoder_inputs; else vocabulary_inputs; fi
  if [ -n "$overfit" ]; then overfit_dialogues; return; fi
  if [ -n "$dry_run" ]; then jobs=1; worker 0; else work_together; fi
  skips report || report
  [ -n "$dry_run" ] || describe
}

main "$@"
