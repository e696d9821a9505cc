# SPDX-FileCopyrightText: 2026 The roundpipe authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the sheet runs, in order: what tells most about the GPUs that are there comes first.

A name stands for one question from commit to commit. Durations are estimates from the rates of
docs/numbers.md; the sheet prefers what a run has taken before.
"""

import dataclasses
import os
import pathlib
import shutil


@dataclasses.dataclass(frozen=True)
class Run:
    name: str
    gpus: int
    kind: str  # who reads its output, see figures.py, and which table it is for
    command: list
    seconds: float  # that it takes, set-up included
    host_gib: float = 0  # that the host must have
    report: pathlib.Path | None = None  # where the output is, if not the standard output
    checkpoint: bool = False  # reads the checkpoint and the rows that the sheet makes
    lacks: str = ""  # why it cannot run


# Tokens a second of one GPU, and the seconds of a set-up, with room for slower machines.
SHAPES = {"1.7b": ("qwen3-1.7b", 38_000, 45), "8b": ("llama3.1-8b", 8_000, 120)}
BOUND = "--checkpoints stages --offload 0 --micro-batches 8 --rounds 1"
STAGES = "--checkpoints stages --offload 0"


def layers_factor(options):
    """How much quicker a model is that has these layers in place of 32."""
    words = options.split()
    return 32 / int(words[words.index("--layers") + 1]) if "--layers" in words else 1


def list_runs(build, work, gpus, torch_bench, python):
    """Each run that \\p gpus GPUs allow. Files that a run makes go to \\p work."""
    bench = build / "bench"
    shared = ["--cost-file", work / "costs"]  # what one run measures, later ones need not

    def train(name, shape, n, batch, extra="", *, context=2048, warmup=2, steps=3, costs=shared,
              **more):
        model, rate, set_up = SHAPES[shape]
        command = [bench / "train_throughput", "--shape", model, "--devices", n, "--batch", batch,
                   "--context", context, "--steps", steps, "--warmup", warmup, *extra.split(),
                   *costs, "--json", "-"]
        factor = layers_factor(extra)
        seconds = set_up / factor + (steps + warmup) * batch * context / (rate * n * factor)
        return Run(f"{name}-x{n}", n, "train", command, seconds, **more)

    def sweep(name, shape, n, batch, budgets, plans, extra, *, context=2048, **more):
        model, rate, set_up = SHAPES[shape]
        command = [bench / "budget_sweep", "--shape", model, "--devices", n, "--batch", batch,
                   "--context", context, "--device-memory", budgets, *extra.split(), *shared,
                   "--steps", 2, "--warmup", 2]
        factor = layers_factor(extra)
        each = set_up / factor + 4 * batch * context / (rate * n * factor)
        return Run(f"{name}-x{n}", n, "sweep", command,
                   each * plans * len(budgets.split(",")), **more)

    def small(n, extra="", name="", **more):  # Qwen3 1.7B, 64 sequences a GPU
        return train("1.7b" + name, "1.7b", n, 64 * n, extra, steps=5, **more)

    def large(n, extra="", name="", **more):  # Llama 3.1 8B in fp32
        return train("8b" + name, "8b", n, max(128, 32 * n), extra, steps=2 if n == 1 else 4,
                     warmup=1 if n == 1 else 2, host_gib=300, **more)

    def declared(n):
        for name, extra in ("", ""), ("-recompute-all", "--partition recompute-all"):
            yield train("8b-declared" + name, "8b", n, max(128, 32 * n),
                        "--states declared " + extra, steps=2, warmup=1, host_gib=150)

    def google(name, n, program, filter_, seconds):
        command = [bench / program, f"--benchmark_filter={filter_}", "--benchmark_format=json"]
        return Run(f"{name}-x{n}", n, name, command, seconds)

    def ranks(n):
        # Processes of one GPU each, and beside them one alone, which has as many cores.
        cores = len(os.sched_getaffinity(0)) // n
        first = f"{cores} * ${{OMPI_COMM_WORLD_LOCAL_RANK:-0}}"
        pin = ["sh", "-c", f'exec taskset -c $(({first}))-$(({first} + {cores - 1})) "$@"', "sh"]
        cut = "--micro-batches 16 --rounds 1"
        one = small(1, cut, "-rank", costs=[])  # a file of costs is for one process
        all_ = train("1.7b-ranks", "1.7b", 1, 64 * n, cut, steps=5, costs=[])
        mpirun = ["mpirun", "--allow-run-as-root", "--bind-to", "none", "-n", n]
        yield dataclasses.replace(one, kind="beside", command=[*pin, *one.command])
        yield dataclasses.replace(all_, name=f"1.7b-ranks-x{n}", gpus=n, kind="ranks",
                                  command=[*mpirun, *pin, *all_.command], seconds=one.seconds + 10,
                                  lacks="" if shutil.which("mpirun") else "no mpirun")

    def sweeps_against(n):
        yield sweep("1.7b-sweep-24", "1.7b", n, 64 * n, "24GiB", 4, "--against")
        yield sweep("8b-12-sweep-24", "8b", n, 64 * n, "24GiB", 4,
                    "--layers 12 --states declared --against", host_gib=100)
        if n > 1:  # recomputation between two runs of the chosen plan: GPUs get hotter
            yield sweep("8b-sweep-24", "8b", n, max(128, 32 * n), "24GiB", 4,
                        "--states declared --against", host_gib=240)

    def recomputing(n):
        yield small(n, "--partition recompute-all", "-recompute-all")
        yield large(n, "--partition recompute-all", "-recompute-all")
        yield small(n, BOUND, "-bound")

    def parts(n):
        for option in ("--sync", "--partition uniform", "--schedule looped-bfs",
                       "--protocol blocking", "--transfers unplanned"):
            name = "-" + option.split()[-1].lstrip("-")
            yield small(n, option, name)
            yield large(n, option, name)

    def long_context():  # of one GPU; hosts of 128 GiB have room for 20 layers
        for name, extra in ("", ""), ("-recompute-all", "--partition recompute-all"):
            yield train("8b-8k" + name, "8b", 1, 36, "--states declared " + extra, context=8192,
                        steps=2, warmup=1, host_gib=240)
        for name, extra in ("", ""), ("-stages", STAGES):
            yield train("8b-20-8k" + name, "8b", 1, 24, "--layers 20 --states declared " + extra,
                        context=8192, steps=2, warmup=1, host_gib=120)
        # Two sweeps, because all five budgets take longer than ten minutes.
        for name, budgets in ("-lean", "12GiB,16GiB"), ("", "24GiB,40GiB,unlimited"):
            yield sweep("8b-8k-sweep" + name, "8b", 1, 16, budgets, 1, "--states declared",
                        context=8192, host_gib=170)

    def resident():
        for rows in 16, 8:
            yield Run(f"plain-{rows}-x1", 1, "plain",
                      [bench / "plain_loop", "--shape", "qwen3-1.7b", "--batch", 64, "--rows", rows,
                       "--steps", 4, "--warmup", 2, "--json", "-"], 45)
        for rows in 16, 8, 4:
            yield Run(f"torch-{rows}-x1", 1, "torch",
                      [python, torch_bench or "FILE", "--model", "qwen3-1.7b", "--batch", 64,
                       "--rows", rows, "--compile", "--iters", 4], 120,
                      lacks="" if torch_bench else "no --torch-bench FILE")

    def finetune():
        # The training that loads the checkpoint, and beside it the same one without files.
        common = ["--model", work / "model", "--data", work / "rows.jsonl", "--quiet", "--backend",
                  "cuda", "--devices", 1, "--device-memory", "24GiB", "--batch", 64, "--context",
                  2048, "--lr", "1e-4", "--no-shuffle", "--held-out", 0, "--eval-rows", 16,
                  "--clip", 0]
        for name, steps, extra in ("", 20, []), ("-lora", 6, "--lora 16 --lora-dropout 0.05".split()):
            report = work / f"report{name}.json"
            yield Run(f"finetune{name}-x1", 1, "finetune",
                      [build / "examples" / "finetune", *common, "--steps", steps, *extra,
                       "--output", work / f"output{name}", "--json", report],
                      60 + steps * 64 * 2048 / 38_000, report=report, checkpoint=True)
        yield dataclasses.replace(train("finetune-none", "1.7b", 1, 64, steps=8), kind="beside")

    yield large(gpus)
    yield small(gpus)
    if gpus > 1:
        yield large(1)
        yield small(1)
    yield Run(f"tests-x{gpus}", gpus, "tests",
              ["ctest", "--test-dir", build, "-R", r"^cuda\.|train_text_cuda", "--no-tests=error"], 240,
              lacks="" if (build / "CTestTestfile.cmake").exists() else f"{build} has no tests")
    yield google("link", gpus, "bench.transfer", "transfer/link", 40)
    yield from sweeps_against(gpus)
    yield from recomputing(gpus)
    yield from declared(gpus)
    yield from long_context()
    yield from resident()
    yield sweep("1.7b-sweep-lean", "1.7b", 1, 64, "8GiB,12GiB,16GiB", 4, "--against")
    yield sweep("1.7b-sweep", "1.7b", 1, 64, "40GiB,80GiB,unlimited", 1, "")
    yield sweep("8b-12-sweep", "8b", 1, 64, "12GiB,80GiB", 4,
                "--layers 12 --states declared --against", host_gib=100)
    yield google("layers", 1, "bench.layers", ".", 60)
    yield from finetune()
    if gpus > 1:
        yield from ranks(gpus)
        yield from recomputing(1)
        yield from parts(gpus)
    for n in 2, 4:
        if n < gpus:
            yield large(n)
            yield small(n)
            yield from sweeps_against(n)
            yield from recomputing(n)
            yield from declared(n)
    yield google("activation", 1, "bench.transfer", "transfer/activation", 150)
    yield train("1.7b-two-rounds", "1.7b", 1, 64, "--micro-batches 8 --rounds 2", steps=3, warmup=1)
