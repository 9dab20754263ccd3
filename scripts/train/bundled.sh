#!/bin/bash
# Trains the bundled model on a GPU, in three runs of at most nine minutes that go on from one another:
#
#   bash scripts/train/bundled.sh 1 [SECONDS]
#   bash scripts/train/bundled.sh 2 [SECONDS]
#   bash scripts/train/bundled.sh 3 [SECONDS]      the last: it also writes model.gguf
#
# A run goes on from the folder target/train/bundled. Where the disk is lost, put the part-*.npz, log.json and
# tokenizer.json of the run before into that folder, and go on with the next number. OUT is the folder for what is to
# be kept, some 45 MB: the weights in parts of less than 16 MB, log.json, tokenizer.json and the model.
set -euo pipefail
export TOKENIZERS_PARALLELISM=false PYTHONUNBUFFERED=1
here=$(dirname "$0")
number=${1:?which run: 1, 2 or 3}
seconds=${2:-500}
folder=${RUN:-target/train/bundled}
out=${OUT:-target/train/out}
mkdir -p "$folder" "$out"
python3 -c 'import torch, tokenizers; print("PyTorch", torch.__version__, torch.cuda.get_device_name() if torch.cuda.is_available() else "without a GPU")'
common=(--generate 1 --seconds "$seconds" --parts "$out")

case $number in
  1)
    rm -f "$folder/state.pt"
    python3 "$here/tokenizer.py" "$folder/vocabulary.json" --size 5120 --documents 30000 --generate 1
    python3 "$here/train.py" "$folder" --tokenizer "$folder/vocabulary.json" "${common[@]}" "${@:3}"
    ;;
  2) python3 "$here/train.py" "$folder" --resume "${common[@]}" "${@:3}" ;;
  3)
    python3 "$here/train.py" "$folder" --resume --decay "${common[@]}" "${@:3}"
    python3 "$here/export.py" "$folder" "$out/model.gguf" --name tritloom-small --licence mit
    ;;
  *) echo "No run $number: 1, 2 or 3" >&2; exit 1 ;;
esac
ls -l "$out"
