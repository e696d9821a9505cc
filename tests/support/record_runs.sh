#!/usr/bin/env bash
# record_runs.sh <build folder> <data folder> <output folder>
# Records results that a change which only moves code must not change: the weights' digests of 20
# short runs of train_text on the text in <data folder>, and the output of plan_pipeline for 24
# problems (without its own planning times). Run the script for a build before the change and one
# after it, with the same data, and compare the two output folders with `diff -r`.
set -euo pipefail
build=$(realpath "$1") data=$(realpath "$2")
mkdir -p "$3"
out=$(realpath "$3")
costs=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../data")

train() {
  "$build"/examples/train_text --data "$data" --steps 12 --seconds 0 --layers 3 --hidden 48 \
    --heads 4 --kv-heads 2 --context 48 --batch 8 --quiet --json "$out/report.json" "$@"
  printf '%s  %s\n' "$(grep -o '"weights_digest": *"[0-9a-f]*"' "$out/report.json" |
    grep -o '[0-9a-f]\{16\}')" "$*" >>"$out/digests.txt"
  rm "$out/report.json"
}
rm -f "$out/digests.txt"
for precision in fp32 bf16 fp16; do
  train --precision $precision
  train --precision $precision --sync
  train --precision $precision --serial
  train --precision $precision --devices 2 --rounds 2 --micro-batches 2
done
train --devices 3 --link-gbps 1
train --tied --optimizer sgd
train --untied --dropout 0.1
train --master single
train --precision bf16 --master bf16
train --gradient-buffers 2 --clip 0.1
train --device-memory 2MiB --seed 7
train --precision fp16 --loss-scale 1e30 --optimizer-threads 1

n=0
plan() {
  n=$((n + 1))
  local name
  name=$(printf '%s/plan-%02d' "$out" $n)
  {
    printf '%s\n' "$*"
    "$build"/examples/plan_pipeline "$@" --json "$name.json" 2>&1 || printf 'exit %d\n' $?
  } | sed -E "s,$out/,,g" | sed -E 's/planned in [0-9.]+ m?s/planned/; s/[0-9.]+ (ms|s) of planning/planning/' >"$name.txt"
  if [[ -f $name.json ]]; then
    sed -i -E 's/("planning_ms": *)[-+0-9.e]+/\1null/' "$name.json"
  fi
}
for model in qwen3-1.7b llama3.1-8b qwen3-32b gpt-oss-20b qwen3-235b-a22b; do
  plan --costs "$costs/costs_$model.json" --schedule all
  plan --costs "$costs/costs_$model.json" --devices 8 --micro-batches 16 --asynchronous
done
for hardware in rtx4090 rtx5090 a100 h100 h200; do
  plan --model-shape llama3.1-8b --hardware $hardware --device-memory 24GiB --schedule all
done
plan --costs "$costs/costs_qwen3-1.7b.json" --partition-by simulation --micro-batches 12
plan --costs "$costs/costs_llama3.1-8b.json" --partition-by simulation --devices 8 --asynchronous
plan --costs "$costs/costs_qwen3-32b.json" --schedule earliest-finish --device-speeds 1,1,0.5,1
plan --costs "$costs/costs_qwen3-1.7b.json" --recompute-waits-for-gradient --micro-batches-per-round 4
plan --model-shape qwen3-32b --hardware rtx4090 --micro-batches 16 --device-memory 24GiB --schedule all
plan --model-shape qwen3-1.7b --hardware h200 --device-memory 2GiB
plan --model-shape qwen3-1.7b --hardware rtx4090 --schedule looped-bfs --stages-per-device 2 \
  --svg "$out/looped.svg" --trace "$out/looped-trace.json"
plan --costs "$costs/costs_gpt-oss-20b.json" --devices 2 --schedule dualpipe --svg "$out/dualpipe.svg"
plan --costs "$costs/costs_llama3.1-8b.json" --device-memory 24GiB,16GiB,24GiB,8GiB
