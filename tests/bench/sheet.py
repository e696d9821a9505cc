# SPDX-FileCopyrightText: 2026 The roundpipe authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench/sheet.sh with a build of shell programs that print what the real ones do, one of which fails
and one hangs, and two GPUs that a false nvidia-smi claims."""

import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

TRAINING = {
    "shape": "qwen3-1.7b", "layers": 28, "parameters": 1720574976, "device": "NVIDIA H200",
    "upload_bytes_per_second": 5.54e10, "download_bytes_per_second": 5.53e10,
    "upload_share_both_ways": 0.9, "download_share_both_ways": 0.8,
    "host_upload_bytes_per_second": 0.0, "host_download_bytes_per_second": 0.0,
    "host_bytes_per_second": 1.3e11, "host_download_weight": 1.1,
    "host_work_bytes_per_second": 1e11,
    "upload_share_beside_work": 0.7, "download_share_beside_work": 0.8, "devices": 1,
    "context": 2048, "batch": 64, "micro_batches": 16, "rounds": 1, "automatic": "",
    "automatic_s": 9.5, "measured_s": 4.5, "planned_s": 3.5, "checkpoints": "stages",
    "overlaps_rounds": False,
    "offloaded_micro_batches": 0, "saved_share": 0.0, "recomputed_flops_share": 0.0, "warmup": 2, "loss_chunk": 2048,
    "precision": "bf16", "states": "fp32", "ranks": 1, "synchronous": False, "schedule": "roundpipe",
    "protocol": "event", "transfers": "planned", "partition": "bound", "forward_stages": [],
    "backward_stages": [30],
    "costs": [{"first_layer": 0, "forward_ms": 0.1, "backward_ms": 0.2}], "t_max_ms": 170.0,
    "setup_s": 21.5, "iterations_s": [2.7, 2.5], "iteration_s": 2.6, "median_s": 2.7, "period": 1,
    "tokens_per_second": 50000.0, "model_tflops_per_device": 530.0, "peak_tflops": 750.0,
    "peak_source": "a product", "mfu": 0.7, "predicted_s": 2.548,
    "predicted_from_warm_up_s": 2.6026, "device_computing_s": [2.4, 2.6], "busy_percent": 97.0,
    "bubble_by_cause_percent": {"drain": 1.5, "imbalance": 0.0, "transfer stall": 0.25},
    "device_budget_bytes": 24 << 30, "device_arena_bytes": 22 << 30,
    "device_ledger_bytes": 22 << 30,
    "device_memory": [{"driver_bytes": 23 << 30, "overhead_bytes": 1 << 30}],
    "host_budget_bytes": None, "host_bytes": 30 << 30, "host_ledger_bytes": 30 << 30,
    "resident_bytes": 31 << 30, "ledger": [{"space": "host", "name": "gradients", "bytes": 1}],
    "loss": 12.3,
}
PLAIN = {"shape": "qwen3-1.7b", "layers": 28, "parameters": 1720574976, "device": "NVIDIA H200",
         "context": 2048, "batch": 64, "rows": 16, "copies": True, "optimizer": False, "warmup": 2,
         "loss_chunk": 2048, "iterations_s": [2.5], "iteration_s": 2.5, "median_s": 2.5,
         "tokens_per_second": 52000.0, "model_tflops_per_device": 550.0, "peak_tflops": 750.0,
         "peak_source": "a product", "mfu": 0.73, "median_tokens_per_second": 52000.0,
         "device_bytes": 60 << 30, "loss": 12.0}
FINETUNE = {"options": {"lora": 0}, "losses": [12.338, 6.3], "evaluation_loss": 6.15766,
            "evaluated_rows": 16, "seconds": 55.0, "load_seconds": 0.174, "load_bytes": 3441150000,
            "tokens_per_second": 47000.0, "mfu": 0.6, "device_bytes_peak": 23 << 30,
            "host_bytes_peak": 29 << 30, "parameters": 1720574976, "trained_parameters": 1720574976}


def benchmarks(names_and_counters):
    return {"context": {"num_cpus": 2}, "benchmarks": [
        {"name": name, "run_name": name, "run_type": "iteration", "iterations": 1, "real_time": 1.5,
         "cpu_time": 1.0, "time_unit": "ms"} | counters for name, counters in names_and_counters]}


LINK = benchmarks(
    (f"transfer/link/devices:{devices}/direction:{way}/KiB:{kib}/iterations:20/manual_time",
     {f"{name}_GBps": 50.0 + way - devices for name in names})
    for devices in (1, 2) for way, names in ((1, ["up"]), (2, ["down"]), (3, ["up", "down"]))
    for kib in (64, 65536))
ACTIVATION = benchmarks([("transfer/activation/arrivals/MiB:8/queued:2/yields:0/iterations:1/manual_time",
                          {"median_us": 5540.0, "p99_us": 5700.0, "device_median_us": 308.0,
                           "median_x": 17.6, "p99_x": 18.2, "link_GBps": 55.5, "kept": 0.947})])
LAYERS = benchmarks([
    ("block_8b/iterations:1/manual_time",
     {"forward_ms": 11.5, "forward_bare_ms": 10.89, "forward_of_bare": 0.947}),
    ("block_8b_beside_copies/iterations:1/manual_time",
     {"pair_ms": 19.18, "pair_of_alone": 0.973, "copies_of_memory": 0.029}),
    ("elements/iterations:1/manual_time", {"copy_GB/s": 4051.0, "swiglu_of_copy": 1.06})])
TESTS = """Test project build
    Start 1: cuda.pipeline
1/3 Test #1: cuda.pipeline ....................   Passed   35.02 sec
    Start 2: cuda.layers
2/3 Test #2: cuda.layers ......................   Passed   12.00 sec
    Start 3: cuda.attention_cudnn
3/3 Test #3: cuda.attention_cudnn .............***Skipped   0.10 sec

100% tests passed, 0 tests failed out of 3

Total Test time (real) =  47.12 sec
"""
NVIDIA_SMI = """case "$1" in
*name*) for i in 1 2; do echo "NVIDIA H200, GPU-$i, 580.65, 143771, 700.00, 1980"; done ;;
*) for i in 1 2; do echo "1500, 650.0, 99, 7$i"; done ;;
esac"""
NAMES = ("1.7b-x?,1.7b-recompute-all-x2,1.7b-uniform-x2,1.7b-sync-x2,"
         "*sweep-24-x2,tests-x2,link-x2,plain-16*,torch-16*,8b-x2,finetune-x1,finetune-none-x1,"
         "1.7b-ranks-x2,1.7b-rank-x1")


def need(condition, *said):
    if not condition:
        sys.exit(f"failed: {said}")


class Fake:
    """A build, and programs in PATH, of shell."""

    def __init__(self, folder):
        self.folder, self.build, self.out = folder, folder / "fake", folder / "out"
        self.bin = folder / "bin"
        for path in self.build / "bench", self.build / "examples", self.bin:
            path.mkdir(parents=True)
        self.program(self.bin / "nvidia-smi", NVIDIA_SMI)
        (self.build / "CTestTestfile.cmake").touch()
        self.program(self.bin / "ctest", f"cat {self.text('tests', TESTS)}")
        two = TRAINING | {"devices": 2, "batch": 128, "tokens_per_second": 95000.0}
        self.program(self.build / "bench/train_throughput", f"""case "$*" in
*uniform*) echo "train_throughput: over the budget" >&2; exit 1 ;;
*--trace*) for file; do :; done; echo "[]" >"$file"; cat {self.text("traced", TRAINING)} ;;
*looped-bfs*) sleep 60 & echo $! >{folder}/child; wait ;;
*recompute-all*) cat {self.text("all", TRAINING | {"tokens_per_second": 80000.0})} ;;
*"--devices 2"*--sync*) cat {self.text("sync", two | {"tokens_per_second": 57000.0})} ;;
*"--devices 2"*) cat {self.text("two", two)} ;;
*) cat {self.text("one", TRAINING)} ;;
esac""")
        of_ranks = self.text("ranks", two | {"devices": 1, "ranks": 2, "tokens_per_second": 90000.0})
        self.program(self.bin / "mpirun", f"cat {of_ranks}")
        rows = [{"budget": "24.00 GiB", "plan": "chosen", "ratio_to_recomputation": 1.05,
                 "faults": []} | TRAINING,
                {"budget": "24.00 GiB", "plan": "recomputation", "faults": []} | TRAINING,
                {"budget": "24.00 GiB", "plan": "offloading", "refusal": "no room"}]
        text = "".join(json.dumps(row) + "\n" for row in rows) + "budget  plan\n24.00 GiB  chosen\n"
        self.program(self.build / "bench/budget_sweep", f"cat {self.text('sweep', text)}")
        self.program(self.build / "bench/plain_loop", f"cat {self.text('plain', PLAIN)}")
        self.program(self.build / "bench/bench.transfer", f"""case "$*" in
*link*) cat {self.text("link", LINK)} ;; *) cat {self.text("activation", ACTIVATION)} ;; esac""")
        self.program(self.build / "bench/bench.layers", f"cat {self.text('layers', LAYERS)}")
        self.program(self.build / "examples/make_tiny_checkpoint", "exit 0")
        self.program(self.build / "examples/finetune", f"""while [ "$1" != --json ]; do shift; done
cat {self.text("finetune", FINETUNE)} >"$2" """)

    def program(self, path, text):
        path.write_text("#!/bin/sh\n" + text + "\n")
        path.chmod(0o755)

    def text(self, name, content):
        path = self.folder / f"{name}.txt"
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2) + "\n")
        return path

    def environment(self, **more):
        return os.environ | {"PATH": f"{self.bin}:{os.environ['PATH']}"} | more

    def command(self, commit, only, *more):
        return [SOURCE / "bench/sheet.sh", self.build, self.out, "--commit", commit, "--only", only,
                *more]

    def sheet(self, commit, only, *more, **environment):
        """Returns the exit status, the lines that this call has written, and what it told."""
        before = len(self.lines())
        done = subprocess.run(self.command(commit, only, *more), text=True,
                              env=self.environment(**environment), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        return done.returncode, {line["name"]: line for line in self.lines()[before:]}, done.stderr

    def lines(self):
        file = self.out / "sheet.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def runs_and_their_lines(fake):
    code, lines, told = fake.sheet("1111111", NAMES)
    need(code == 1, code, told)
    status = {name: line["status"] for name, line in lines.items()}
    need(status["1.7b-uniform-x2"] == "failed", status)
    skipped = {name for name, how in status.items() if how == "skipped"}
    # The file for PyTorch is missing. A host that is large enough runs 8B, too.
    need("torch-16-x1" in skipped and skipped <= {"torch-16-x1", "8b-x2", "8b-sweep-24-x2",
                                                      "8b-12-sweep-24-x2"},
         status)
    need(all(status[name] == "ok" for name in set(status) - skipped - {"1.7b-uniform-x2"}), lines)
    need(len(told.splitlines()) == len(lines) == 17, told)
    need("1.7b-x2: ok after" in told and "95,000 tokens/s" in told, told)

    failed = lines["1.7b-uniform-x2"]
    need(failed["exit_status"] == 1 and failed["reason"] == "train_throughput: over the budget", failed)
    need("--torch-bench" in lines["torch-16-x1"]["reason"], lines["torch-16-x1"])
    line = lines["1.7b-x2"]
    need(line["gpu"] == {"name": "NVIDIA H200", "count": 2, "there": 2, "used": 2,
                         "driver": "580.65", "memory_mib": 143771, "power_limit_w": 700,
                         "max_clock_mhz": 1980}, line)
    need(line["machine"]["cores"] >= 1 and line["machine"]["memory_gib"] > 0, line)
    need(line["command"].startswith("build/bench/train_throughput --shape qwen3-1.7b --devices 2"),
         line["command"])
    with_costs = {name for name in lines if "--cost-file" in lines[name]["command"]}
    need({"1.7b-x2", "1.7b-sweep-24-x2"} <= with_costs, with_costs)
    need(not {"1.7b-rank-x1", "1.7b-ranks-x2"} & with_costs, with_costs)
    found = line["figures"]
    need(found["exposed_percent"] == 0.25 and found["driver_peak_gib"] == 23
         and abs(found["forecast_percent"] + 2) < 1e-9
         and abs(found["warm_up_forecast_percent"] - 0.1) < 1e-9 and found["mfu"] == 0.7, found)
    need(lines["tests-x2"]["figures"] == {
        "tests": 3, "failed": 0, "skipped": ["cuda.attention_cudnn"], "not_passed": []}, lines)
    need(lines["1.7b-sweep-24-x2"]["figures"]["rows"][2]["refusal"] == "no room", lines)
    need(lines["finetune-x1"]["figures"]["last_loss"] == 6.3, lines)
    need(not list(fake.out.glob("work-*")), list(fake.out.iterdir()))
    need((fake.out / "logs/1.7b-x2.1111111.out").read_text() == (fake.folder / "two.txt").read_text())


def a_program_that_hangs_ends_and_the_sheet_goes_on(fake):
    code, lines, told = fake.sheet("1111111", "1.7b-looped-bfs-x2,activation-x1", "--limit", "3")
    need(code == 1 and {name: line["status"] for name, line in lines.items()} ==
         {"1.7b-looped-bfs-x2": "timeout", "activation-x1": "ok"}, lines, told)
    clocks = {"median": 1500, "least": 1500, "most": 1500}
    hung = lines["1.7b-looped-bfs-x2"]
    need(hung["clock_mhz"] == clocks and hung["power_w"] == 650 and hung["hottest_c"] == [71, 72]
         and hung["other_gpus"] == 0, hung)
    # What it had started is gone, too.
    child = pathlib.Path("/proc") / (fake.folder / "child").read_text().strip() / "stat"
    end = time.monotonic() + 2
    while child.exists() and child.read_text().rsplit(")", 1)[1].split()[0] != "Z":
        need(time.monotonic() < end, "the child is alive")


def one_of_two_gpus(fake):
    """That CUDA shows alone: the other one may be busy, too."""
    text = fake.text("layers", LAYERS)
    fake.program(fake.build / "bench/bench.layers", f"sleep 1.5; cat {text}")  # it is looked at
    code, lines, _ = fake.sheet("5555555", "layers-x1,link-x2", CUDA_VISIBLE_DEVICES="1")
    line = lines["layers-x1"]
    need(code == 0 and len(lines) == 1, lines)
    need(line["gpu"]["count"] == 1 and line["gpu"]["there"] == 2, line)
    need(line["hottest_c"] == [72] and line["other_gpus"] == 1, line)
    both = next(line for line in fake.lines() if line["name"] == "1.7b-x2")
    need(line["machine"]["id"] != both["machine"]["id"], line)


def timelines_are_kept(fake):
    _, lines, _ = fake.sheet("6666666", "1.7b-x1,plain-8-x1", "--traces")
    need(all(line["status"] == "ok" and "--trace" not in line["command"]
             for line in lines.values()) and len(lines) == 2, lines)
    kept = [path.name for path in (fake.out / "logs").glob("*.trace.json")]
    need(kept == ["1.7b-x1.6666666.trace.json"], kept)


def a_sheet_goes_on(fake):
    code, lines, told = fake.sheet("1111111", NAMES + ",1.7b-looped-bfs-x2")
    need(code == 0 and all(line["status"] == "skipped" for line in lines.values()), lines)
    need("1.7b-looped-bfs-x2: held already" in told, told)
    _, lines, _ = fake.sheet("1111111", "1.7b-uniform-x2,1.7b-x2", "--again")
    need([(line["name"], line["status"]) for line in lines.values()] ==
         [("1.7b-uniform-x2", "failed")], lines)


def nothing_begins_that_would_not_end(fake):
    # By our estimate recomputing takes a minute and more on one GPU, of which there is no line.
    _, lines, _ = fake.sheet("2222222", "1.7b-recompute-all-x1,link-x2", "--seconds", "50")
    need(lines["1.7b-recompute-all-x1"]["status"] == "skipped", lines)
    need(re.fullmatch(r"needs \d+ s, \d+ s are left",
                      lines["1.7b-recompute-all-x1"]["reason"]), lines)
    need(lines["link-x2"]["status"] == "ok", lines)
    # What a run has taken before counts more.
    _, lines, _ = fake.sheet("2222222", "1.7b-x2", "--seconds", "50")
    need(lines["1.7b-x2"]["status"] == "ok", lines)


def a_run_that_the_seconds_cut_off_is_not_held(fake):
    fake.program(fake.build / "bench/plain_loop", "exec sleep 60")
    _, lines, _ = fake.sheet("4444444", "plain-16-x1", "--seconds", "3")
    need(lines["plain-16-x1"]["status"] == "out of time", lines)
    # It has taken longer than before, and did not end.
    _, lines, _ = fake.sheet("4444444", "plain-16-x1", "--seconds", "1")
    need(re.match(r"needs \d+ s", lines["plain-16-x1"]["reason"]), lines)


def an_interrupted_sheet_keeps_what_it_has(fake):
    (fake.folder / "child").unlink()
    with subprocess.Popen(fake.command("3333333", "plain-16-x1,1.7b-looped-bfs-x2,activation-x1"),
                          env=fake.environment(), stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + 20
        while not (fake.folder / "child").exists():
            need(process.poll() is None and time.monotonic() < end, "no program has begun")
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=20)
    need(process.returncode == 130 and "Traceback" not in told, told)
    status = [(line["name"], line["status"]) for line in fake.lines() if line["commit"] == "3333333"]
    need(status == [("plain-16-x1", "ok"), ("1.7b-looped-bfs-x2", "interrupted")], status)
    _, lines, _ = fake.sheet("3333333", "plain-16-x1,layers-x1,activation-x1")
    need(list(lines) == ["layers-x1", "activation-x1"], lines)


def tables(fake):
    def run(*words):
        return subprocess.run([sys.executable, "-B", SOURCE / "bench/sheet/tables.py", *words,
                               fake.out / "sheet.jsonl"], capture_output=True, text=True)

    text = run().stdout
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()
            if line.startswith("| ")]
    two = [row for row in rows if row[0] == "`1.7b-x2`"]
    need(len(two) == 1 and two[0][-1].startswith("2222222, "), two)  # of two commits
    need("95,000" in two[0] and "16 x 8, 1" in two[0] and "-2.0 %, +0.1 %" in two[0], two)
    sync = next(row for row in rows if row[0] == "`1.7b-sync-x2`")
    # The run with which to compare it is of another commit.
    need(sync[1:6] == ["57,000", "", "97.0 %", "0.25 %", "drain 1.5 %"], sync)
    sweep = [row for row in rows if row[0] == "`1.7b-sweep-24-x2`"]
    need(len(sweep) == 2 and "1.050" in sweep[0], sweep)
    layers = [row[:4] for row in rows if row[0].startswith(("block_8b", "elements"))]
    need(layers == [["block_8b, forward", "10.89", "11.50", "94.7 %"],
                    ["block_8b_beside_copies, pair", "", "19.18", "97.3 %"],
                    ["elements, swiglu", "", "", "106.0 %"]], layers)
    need(any(row[:4] == ["`finetune-x1`", "0.174 s", "47,000", "50,000"] for row in rows), rows)
    links = [row[:8] for row in rows if row[1] == "both: down"]
    need(links == [["1 x NVIDIA H200", "both: down", "52.0", "", "", "", "", "52.0"],
                   ["2 x NVIDIA H200", "both: down", "51.0", "", "", "", "", "51.0"]], links)
    need(any(row[0] == "block_8b, forward" and row[1:4] == ["10.89", "11.50", "94.7 %"]
             for row in rows), rows)
    need(["`tests-x2`", "2 x NVIDIA H200", "3", "2", "", "cuda.attention_cudnn"] in
         [row[:6] for row in rows], rows)
    need(any(row[:2] == ["1", "2 x NVIDIA H200"] and row[4:6] == ["580.65", "700 W"] for row in rows),
         rows)
    need("uniform" not in text and "looped-bfs" not in text, text)

    page = fake.folder / "page.md"
    page.write_text("a\n<!-- sheet: tests -->\nold\n<!-- end of sheet -->\nb\n")
    done = run("--page", page)
    need(done.returncode == 0 and "no place for the table training" in done.stderr, done)
    written = page.read_text()
    need(written.startswith("a\n<!-- sheet: tests -->\n\nThe tests") and "old" not in written
         and written.endswith("\n\n<!-- end of sheet -->\nb\n"), written)
    need(written.count("`tests-x2`") == 1, written)
    run("--page", page)
    need(page.read_text() == written, page.read_text())  # twice is once
    page.write_text((SOURCE / "docs/numbers.md").read_text())  # it has a place for every table
    done = run("--page", page)
    _, tables, _ = re.split("<!-- (?:sheet:|end of sheet)", page.read_text())
    need(done.returncode == 0 and not done.stderr and tables.count("`1.7b-x2`") == 1, done)
    page.write_text("<!-- sheet: tests no -->\n<!-- end of sheet -->\n")
    need(run("--page", page).returncode != 0)


def ratios(fake):
    """Of one commit on one machine: one more sheet of the first commit, without the second."""
    lines = [line for line in fake.lines() if line["commit"] == "1111111"]
    sys.path.insert(0, str(SOURCE / "bench/sheet"))
    import tables as module

    def row(lines, table, name):
        heads, rows = getattr(module.Page(lines), table)()
        return next(dict(zip(heads, row)) for row in rows if row[0] == f"`{name}`")

    found = row(lines, "training", "1.7b-x2")
    need(found[":of one GPU"] == "1.90" and found[":of all recomputed"] == "1.188"
         and found[":slowest GPU"] == "+4.0 %", found)
    part = [line | {"hottest_c": [65, 71], "other_gpus": 2, "gpu": line["gpu"] | {"there": 4}}
            for line in lines]
    _, machines = module.Page(part).machines()
    need([(row[1], row[-1]) for row in machines] == [("2 of 4 x NVIDIA H200", "71 C")], machines)
    need(row(part, "training", "1.7b-x2")["measured"].endswith("machine 1, beside 2 busy GPUs"), part)
    later = [line | {"commit": "2222222", "date": "2999"} for line in part]
    need(row([*lines, *later], "training", "1.7b-x2")["measured"].startswith("1111111"), later)
    need(row(lines, "ranks", "1.7b-ranks-x2")[":a rank, of one alone"] == "0.90", lines)
    need(row(lines, "parts", "1.7b-sync-x2")[":of the chosen plan"] == "60.0 %", lines)
    need(row(lines, "resident", "plain-16-x1")[":24 GiB (`1.7b-x1`) has"] == "0.962", lines)
    for line in lines:
        if line["kind"] == "tests":  # a later failure does not leave the table
            failed = line | {"status": "failed", "date": "2999", "other_gpus": 1, "figures": line["figures"] | {
                "failed": 1, "not_passed": ["cuda.layers"]}}
    need(row([*lines, failed], "tests", "tests-x2")["failed"] == "cuda.layers", lines)
    for line in lines:
        if line["name"] == "1.7b-x1":
            line["machine"] = line["machine"] | {"id": "another"}
    need(row(lines, "training", "1.7b-x2")[":of one GPU"] == "", lines)


def names_are_those_of_the_sources(fake):
    """The keys that these outputs have, and the options that the sheet gives to our programs."""
    parts = [path for folder in ("bench", "examples") for path in (SOURCE / folder).rglob("*.[ch]pp")]
    sources = "".join(path.read_text() for path in parts)
    keys = set(TRAINING) | set(PLAIN) | set(FINETUNE) | set(TRAINING["device_memory"][0])
    need(not [key for key in keys if f'"{key}"' not in sources],
         [key for key in keys if f'"{key}"' not in sources])
    sys.path.insert(0, str(SOURCE / "bench/sheet"))
    import runs
    for gpus in 1, 2, 4, 8:
        listed = list(runs.list_runs(fake.build, fake.out, gpus, None, "python3"))
        names = [run.name for run in listed]
        need(len(names) == len(set(names)), sorted(names))
        need(all(run.gpus in (1, 2, 4, 8) and run.gpus <= gpus and run.seconds > 0
                 for run in listed), gpus)
        for run in listed:
            ours = run.kind in ("train", "beside", "sweep", "plain", "finetune")
            for word in map(str, run.command):
                need(not ours or not word.startswith("--") or f'"{word}"' in sources, run.name, word)
    counters = (SOURCE / "bench/transfer.bench.cpp").read_text()
    for _, made in (("transfer", LINK), ("transfer", ACTIVATION)):
        for each in made["benchmarks"]:
            for key in set(each) - set(LAYERS["benchmarks"][0]):
                need(f'counters["{key}"]' in counters, key)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True, type=pathlib.Path)
    parser.add_argument("--folder", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    SOURCE = arguments.source.resolve()
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    made = Fake(arguments.folder.resolve())
    for check in (runs_and_their_lines, a_program_that_hangs_ends_and_the_sheet_goes_on,
                  one_of_two_gpus, timelines_are_kept, a_sheet_goes_on,
                  nothing_begins_that_would_not_end,
                  an_interrupted_sheet_keeps_what_it_has,
                  a_run_that_the_seconds_cut_off_is_not_held, tables, ratios,
                  names_are_those_of_the_sources):
        check(made)
