#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The roundpipe authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Does MPI cost a training anything that one process runs?

    bench/mpi_cost.py FOLDER [--minutes 15] [OPTION...]

Builds train_text in FOLDER without MPI and with it. Each round runs both, and the second one again
under mpirun as the only rank, in an order that changes from round to round: the same short training on
emulated devices, to the same weights, which the script checks. OPTIONs go to every run.

Single runs differ by more than what is looked for, so that runs of one round are compared. Prints the
median over all rounds of the ratio to the run without MPI, and its 95 % confidence interval (10,000
bootstrap samples), of the time of CPUs and of the time that passes, both from the first step to the
end of the last. Needs cmake, ninja and mpirun. Leave the machine alone meanwhile; the time of CPUs
suffers less from others.
"""

import argparse
import itertools
import json
import pathlib
import random
import statistics
import subprocess
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent
TRAINING = "--layers 4 --hidden 128 --context 16 --batch 64 --devices 2 --steps 20 --seconds 0 --quiet"
MPIRUN = ["mpirun", "--allow-run-as-root", "--bind-to", "none", "-n", "1"]


def build(folder, mpi):
    options = [f"-DROUNDPIPE_ENABLE_MPI={mpi}", "-DROUNDPIPE_BUILD_TESTS=OFF", "-DCMAKE_BUILD_TYPE=Release"]
    subprocess.run(["cmake", "-S", SOURCE, "-B", folder, "-G", "Ninja", *options], check=True,
                   stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", folder, "train_text"], check=True, stdout=subprocess.DEVNULL)
    return folder / "examples/train_text"


def median_and_interval(ratios):
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(10_000))
    return statistics.median(ratios), medians[250], medians[-251]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=15)
    o, options = parser.parse_known_args()
    without = build(o.folder / "without", "OFF")
    with_mpi = build(o.folder / "with", "ON")
    commands = {"without": [without], "built in": [with_mpi], "mpirun -n 1": [*MPIRUN, with_mpi]}
    report = o.folder / "report.json"
    runs = {name: [] for name in commands}
    orders = list(itertools.permutations(commands))
    end = time.monotonic() + 60 * o.minutes
    for number in itertools.count():  # the first one warms up
        if number > 2 and time.monotonic() > end:
            break
        for name in orders[number % len(orders)]:
            words = [*commands[name], *TRAINING.split(), "--data", SOURCE / "docs", "--json", report, *options]
            subprocess.run(words, check=True)
            runs[name].append(json.loads(report.read_text()))
    assert len({run["weights_digest"] for of_name in runs.values() for run in of_name}) == 1, "other weights"
    print(f"{number - 1} rounds\n\n| MPI | measure | ratio | 95 % | runs alone differ by |\n|---|---|--:|--:|--:|")
    for name, key in itertools.product(list(commands)[1:], ("cpu_seconds", "seconds")):
        pairs = [(a[key], b[key]) for a, b in zip(runs["without"][1:], runs[name][1:])]
        ratio, low, high = median_and_interval([b / a for a, b in pairs])
        alone = [a for a, _ in pairs]
        spread = statistics.stdev(alone) / statistics.mean(alone)
        print(f"| {name} | {key} | {ratio:.4f} | {low:.4f} to {high:.4f} | {100 * spread:.1f} % |", flush=True)


if __name__ == "__main__":
    main()
