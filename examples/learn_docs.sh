#!/bin/sh
# SPDX-FileCopyrightText: 2026 The roundpipe authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Learns this project's docs from nothing, on the host, in some minutes: a tokenizer trained on them,
# a tiny Qwen3 of random weights, a training of all weights on the pages of docs/ that explain, and
# low-rank adapters on top for docs/numbers.md, which the model has not seen. Prints what the model
# writes, and leaves the folders that transformers and peft open.
#
#   examples/learn_docs.sh [FOLDER]
#
# FOLDER (learn_docs) must not exist. BUILD (build) is the build folder, PYTHON (python3) has the
# package tokenizers. With FIGURES=docs/figures/learning the curves of the losses go there.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
programs=$(cd "${BUILD:-$root/build}/examples" && pwd)
python=${PYTHON:-python3}
folder=${1:-learn_docs}
mkdir "$folder"

"$python" "$root/examples/tokenize_data.py" --tokenizer "$folder/model" --train-tokenizer 1024 \
  --output "$folder/docs.tokens" "$root/README.md" "$root"/docs/[01]*.md "$root/docs/design.md"
"$python" "$root/examples/tokenize_data.py" --tokenizer "$folder/model" \
  --output "$folder/numbers.tokens" "$root/docs/numbers.md"
"$programs/make_tiny_checkpoint" --output "$folder/model" --architecture qwen3 --vocabulary 1024 \
  --hidden 128 --layers 4 --heads 4 --kv-heads 2 --context 128 --tied

"$programs/finetune" --model "$folder/model" --data "$folder/docs.tokens" --output "$folder/full" \
  --steps 400 --batch 16 --context 128 --held-out 20 --eval-every 40 --eval-rows 32 \
  --lr 6e-3 --schedule cosine --warmup 20 --beta2 0.95 --weight-decay 0.1 --sync --backend host
"$programs/finetune" --model "$folder/full" --data "$folder/numbers.tokens" --output "$folder/lora" \
  --lora 16 --lora-alpha 32 \
  --steps 200 --batch 16 --context 128 --held-out 10 --eval-every 20 --eval-rows 32 \
  --lr 6e-3 --schedule cosine --warmup 10 --beta2 0.95 --sync --backend host

"$python" - "$programs/generate" "$folder" <<'END'
import subprocess
import sys

import tokenizers

generate, folder = sys.argv[1:]
tokenizer = tokenizers.Tokenizer.from_file(folder + "/full/tokenizer.json")
for options, prompt in (([], "A pipeline"), (["--adapter", folder + "/lora"], "On one H200")):
    ids = tokenizer.encode(prompt).ids
    made = subprocess.run(
        [generate, "--model", folder + "/full", *options, "--prompt-ids", ",".join(map(str, ids)),
         "--tokens", "80", "--temperature", "0.6", "--top-p", "0.9", "--backend", "host"],
        check=True, capture_output=True, text=True).stdout
    print("---", tokenizer.decode([int(token) for token in made.split(",")]), sep="\n")
END

if [ -n "${FIGURES:-}" ]; then
  cp "$folder/full/loss.svg" "$FIGURES/all_weights.svg"
  cp "$folder/lora/loss.svg" "$FIGURES/adapters.svg"
fi
