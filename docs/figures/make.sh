#!/bin/sh
# SPDX-FileCopyrightText: 2026 The roundpipe authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# make.sh <plan_pipeline> [folder]
# Draws the pictures of docs/02_schedules.md with the program build/examples/plan_pipeline, into a
# folder (default: this one). The same program draws the same bytes.
set -eu

program=$1
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
out=${2:-$here}

# draw <picture> <costs> <schedule> [option...]
draw() {
  picture=$1 costs=$2 schedule=$3
  shift 3
  # Drops its advice on small stages, which is meant for real models.
  "$program" --costs "$here/$costs.json" --devices 4 --micro-batches 8 --schedule "$schedule" "$@" \
    --svg "$out/$picture.svg" > /dev/null 2> "$out/$picture.log" ||
    { cat "$out/$picture.log" >&2; exit 1; }
  rm "$out/$picture.log"
}

# 8 equal layers: a stage of 2 takes 1 ms forward and 2 ms backward; nothing is recomputed.
for schedule in naive gpipe 1f1b zb-h1 dualpipe; do
  draw $schedule equal $schedule
done
for schedule in interleaved-1f1b looped-bfs; do
  draw $schedule equal $schedule --stages-per-device 2
done

# 7 equal layers with recomputation: 9 stages of 3 ms each.
draw roundpipe recomputed roundpipe
draw roundpipe-asynchronous recomputed roundpipe --asynchronous
draw earliest-finish recomputed earliest-finish --device-speeds 1,1,0.5,0.5

# 8 layers with recomputation, and a head that takes as long as two of them.
draw figure1a head 1f1b
draw figure1b head looped-bfs
draw figure1c head roundpipe --partition-by simulation
draw figure1c-asynchronous head roundpipe --partition-by simulation --asynchronous
