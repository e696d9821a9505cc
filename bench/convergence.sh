#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The roundpipe authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# bash bench/convergence.sh TRAIN_TEXT OUTDIR [OPTION...]
#
# Does a model learn as much when the optimizer lags one step behind? The script trains two models
# with AdamW and with SGD, synchronously and with staleness 1, from three seeds each: 24 runs of the
# program TRAIN_TEXT (build/examples/train_text), as many at a time as there are cores. It leaves
# the reports of the runs in OUTDIR and prints a Markdown table of the loss on held-out text.
#
#   OPTION...  go to every run, after its own: `--steps 5` for a quick look, `--data PATH` for
#              another text than the project's own files
#   JOBS       in the environment: runs at a time instead
#
# The number of steps is fixed and no time limit applies: equal options and text give equal weights,
# on any machine with the same arithmetic. The seed decides initial weights and batches, so a
# synchronous run and its stale twin differ in staleness alone; the last column is their mean
# difference. Both use train_text's default rate for the optimizer and its momentum of 0.5, see
# examples/train_text/chosen_optimizer.hpp. The rate decides how much staleness costs: try `--lr` as
# an OPTION. About 4 core-minutes. Needs bash, xargs, and python3 for the table; do not change the
# text meanwhile.
set -euo pipefail

if (($# < 2)); then
  echo "usage: bash bench/convergence.sh TRAIN_TEXT OUTDIR [OPTION...]" >&2
  exit 2
fi
program=$1 out=$2
shift 2

# The larger model first: the longest runs should not begin last.
shapes=(large small)
declare -A shape_options=(
  [large]="--layers 4 --hidden 128 --heads 4 --kv-heads 2 --context 64 --batch 8 --steps 300"
  [small]="--layers 2 --hidden 64 --heads 4 --kv-heads 2 --context 64 --batch 16 --steps 600"
)
declare -A rates=([adamw]=0.002 [sgd]=0.1)
declare -A mode_options=([sync]="--sync" [stale]="")

# Sets the optimizer's threads, so parallel runs are not all pinned to the same cores.
common="--devices 2 --micro-batches 4 --seconds 0 --optimizer-threads 1 --quiet"

mkdir -p "$out"
rm -f "$out"/*.json "$out"/*.log
for shape in "${shapes[@]}"; do
  for rule in adamw sgd; do
    for mode in sync stale; do
      for seed in 1 2 3; do
        echo "$shape-$rule-$mode-$seed $common ${shape_options[$shape]} --optimizer $rule" \
          "--lr ${rates[$rule]} ${mode_options[$mode]} --seed $seed"
      done
    done
  done
done >"$out/runs"

# run FOLDER PROGRAM COUNT OPTION... NAME ARGUMENT...: runs once; COUNT is the number of OPTIONs.
run() {
  local out=$1 program=$2 options=("${@:4:$3}")
  shift $((3 + $3))
  local name=$1
  if ! "$program" "${@:2}" "${options[@]}" --json "$out/$name.json" >"$out/$name.log" 2>&1; then
    echo "$name failed: $(tail -n 1 "$out/$name.log")" >&2
    return 1
  fi
}
export -f run
if ! xargs -P "${JOBS:-$(nproc)}" -L 1 bash -c 'run "$@"' run "$out" "$program" $# "$@" \
  <"$out/runs"; then
  echo "convergence.sh: not all runs were done" >&2
  exit 1
fi

python3 - "$out" <<'PYTHON' | tee "$out/convergence.md"
import json
import pathlib
import statistics
import sys

reports = {}
for path in pathlib.Path(sys.argv[1]).glob("*.json"):
    shape, rule, mode, seed = path.stem.split("-")
    reports.setdefault((shape, rule, mode), {})[int(seed)] = json.loads(path.read_text())


def losses(key):
    return {seed: r["validation_nats_per_byte"] for seed, r in sorted(reports[key].items())}


texts = {(r["training_bytes"], r["held_out_bytes"], r["bigram_nats_per_byte"])
         for of_seeds in reports.values() for r in of_seeds.values()}
if len(texts) != 1:
    sys.exit("convergence.sh: the text has changed between runs; give one that stays as --data")
training_bytes, _, bigram = texts.pop()
print(f"Validation loss in nats per byte, after learning from {training_bytes} bytes of text, "
      f"whose bigram entropy is {bigram:.4f}.\n")
print("| model | optimizer, rate | steps | weights | mean | smallest to largest | deviation "
      "| against synchronous |")
print("|---|---|--:|---|--:|--:|--:|--:|")
for shape in ("small", "large"):
    for rule in ("adamw", "sgd"):
        sync = losses((shape, rule, "sync"))
        for mode, name in (("sync", "synchronous"), ("stale", "staleness 1")):
            report = next(iter(reports[shape, rule, mode].values()))
            o = report["options"]
            values = losses((shape, rule, mode))
            apart = statistics.mean(v - sync[seed] for seed, v in values.items())
            print(f"| {o['layers']} x {o['hidden']}, context {o['context']} | {rule} {o['lr']:g} "
                  f"| {report['steps']} | {name} | {statistics.mean(values.values()):.4f} "
                  f"| {min(values.values()):.4f} to {max(values.values()):.4f} "
                  f"| {statistics.stdev(values.values()):.4f} "
                  f"| {'' if mode == 'sync' else f'{apart:+.4f}'} |")
PYTHON
