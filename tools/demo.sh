#!/usr/bin/env bash
# The whole of basic_tf on the embedded data: train, evaluate, export, classify.
#
#   bash tools/demo.sh [--compare] [DIR]
#
# DIR (runs/demo) then holds the run, report.html, report.json and a SavedModel.
# --compare also trains contrastively from scratch for about the same time.
set -euo pipefail

directory=runs/demo
compare=
for argument in "$@"; do
  case $argument in
    --compare) compare=yes ;;
    -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit ;;
    -*) echo "error: unknown option $argument; known: --compare, --help" >&2; exit 1 ;;
    *) directory=$argument ;;
  esac
done
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

train() {
  python -m experiments.train --config "experiments/configs/glyphs.py:$1" \
    --config.data.data_dir="$directory/data" --workdir "$2"
}

train nano "$directory"
compared=()
if [ -n "$compare" ]; then
  train scratch "$directory/scratch"
  compared=(--compare_workdir "$directory/scratch")
fi
python -m experiments.evaluate --workdir "$directory" ${compared[@]+"${compared[@]}"}
python -m tools.export_saved_model --workdir "$directory" --output "$directory/saved_model"
python -m tools.classify --saved_model "$directory/saved_model" tests/images/lock.png

cat <<EOM

Report:      $directory/report.html
Figures:     $directory/report.json
SavedModel:  $directory/saved_model

Next:
  python -m tools.classify --saved_model $directory/saved_model --labels "home,heart,lock" FILE
  python -m experiments.evaluate --workdir $directory --tasks digits --json --output DIR
  tensorboard --logdir $directory/events
(after: source .venv/bin/activate)
EOM
