#!/usr/bin/env bash
# The whole pipeline on the sample corpus: installs, prepares the data, trains
# T5DST with back-translated schemas, evaluates on the original and v1-v5
# schemas, prints the SGD-X table and writes an HTML report. About 8 minutes on
# two cores.
# Rerun it to continue where it stopped. It has no options:
#
#   launch/quickstart.sh
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in
  "") ;;
  -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' launch/quickstart.sh; exit ;;
  *)
    echo "$1 is not an option" >&2
    echo "  expected:  no options" >&2
    echo "  fix:       launch/quickstart.sh" >&2
    exit 2 ;;
esac
run=runs/quickstart
mkdir -p "$run"

source launch/environment.sh

say "1/5 Data: TFDS records of the sample corpus"
sgdx data prepare --corpus sample --data-dir data

say "2/5 Training: gin/sample/t5dst_backtrans.gin (TensorBoard: tensorboard --logdir $run)"
if [ -e "$run/trained" ]; then
  echo "already done: $run/model" >&2
else
  python -m t5x.train --gin_file=gin/sample/t5dst_backtrans.gin \
    --gin.MODEL_DIR="'$run/model'" --tfds_data_dir=data
  touch "$run/trained"
fi

say "3/5 Evaluation: test split with the original schemas and v1-v5"
if [ -e "$run/evaluated" ]; then
  echo "already done: $run/eval" >&2
else
  rm -rf "$run/eval/inference_eval" # its journal, which stays, has what an interrupted run answered
  python -m t5x.eval --gin_file=gin/sample/eval.gin --gin.CHECKPOINT_PATH="'$run/model'" \
    --gin.utils.RestoreCheckpointConfig.mode="'latest'" \
    --gin.EVAL_OUTPUT_DIR="'$run/eval'" --tfds_data_dir=data
  touch "$run/evaluated"
fi

say "4/5 Scores"
sgdx score --corpus sample --split test --predictions "all=$run/eval/inference_eval" \
  --json "$run/scores.json" --per-frame "$run/scores.frames.jsonl"

say "5/5 Report"
sgdx report "backtrans=$run/scores.json" --out "$run/report" >/dev/null
cat <<END
report       $run/report/report.html (tables, plots and errors; open it in a browser)
scores       $run/scores.json
predictions  $run/eval/inference_eval/*.jsonl
model        $run/model
start over   rm -r $run
END
