# SPDX-FileCopyrightText: 2026 The roundpipe authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures what docs/numbers.md publishes for GPUs, with the GPUs that are there, or those of them that
CUDA_VISIBLE_DEVICES names. What it names must be numbers, in nvidia-smi's order.

Runs what runs.py lists, the most informative first, and appends a line of JSON for each run to
OUT/sheet.jsonl: commit, date, machine, GPUs with clocks and power limit, command, exit status,
seconds and figures. OUT/logs keeps what programs print. A run that OUT holds for this commit and
these GPUs is not run again, so a sheet that was cut off goes on; nothing begins that would not end
within --seconds. A run that fails or hangs is a line, too, and the sheet goes on. tables.py makes
tables of the lines.

The comparison with PyTorch runs with --torch-bench FILE alone, a program that takes --model,
--batch, --rows, --compile and --iters, and ends with a line of JSON: tokens_per_s and peak_gib.
"""

import argparse
import datetime
import fnmatch
import hashlib
import importlib.util
import json
import os
import pathlib
import random
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import figures
import runs

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SAMPLE_SECONDS = 5  # between two looks at the clocks
SKIPPED = 77  # how programs without a device exit


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def git(*words):
    done = subprocess.run(["git", "-C", SOURCE, *words], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def find_commit():
    """The commit's short name, with a + if files differ from it, and its date."""
    name = git("rev-parse", "--short=7", "HEAD")
    if name is None:
        sys.exit("sheet: this is no git checkout; say which commit BUILD is of: --commit NAME")
    changed = git("status", "--porcelain", "--untracked-files=no")
    return name + ("+" if changed else ""), git_date("HEAD")


def git_date(commit):
    seconds = git("show", "-s", "--format=%ct", commit)
    return seconds and datetime.datetime.fromtimestamp(
        int(seconds), datetime.timezone.utc).isoformat(timespec="seconds")


def visible(gpus):
    """Those of these GPUs that CUDA shows."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return gpus if named is None else [gpus[int(word)] for word in named.split(",") if word]


def query(*fields):
    """What nvidia-smi says of each GPU, as lists of texts; None without it."""
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=" + ",".join(fields),
                               "--format=csv,noheader,nounits"],
                              capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    return [line.split(", ") for line in done.stdout.strip().splitlines()]


def number(text):
    try:
        return float(text)
    except ValueError:
        return None  # nvidia-smi says [N/A]


def describe_machine(gpus):
    model = "unknown"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        memory = min(memory, int(pathlib.Path("/sys/fs/cgroup/memory.max").read_text()))
    except (OSError, ValueError):
        pass  # no limit
    # Rows of one machine may be compared: the GPUs' ids say which it was.
    ids = " ".join(sorted(gpu[1] for gpu in gpus))
    return {"cpu": model, "cores": len(os.sched_getaffinity(0)),
            "memory_gib": round(memory / figures.GIB, 1),
            "id": hashlib.sha1(ids.encode()).hexdigest()[:8]}


def describe_gpus(gpus, there):
    first = gpus[0]
    return {"name": first[0], "count": len(gpus), "there": there, "driver": first[2],
            "memory_mib": number(first[3]), "power_limit_w": number(first[4]),
            "max_clock_mhz": number(first[5])}


def write_rows(path):
    """Random rows of tokens of unlike frequencies, for finetune."""
    draw = random.Random(1)
    with open(path, "w") as out:
        for _ in range(128):
            row = [min(151_000, int(draw.paretovariate(0.4))) for _ in range(2048)]
            out.write(json.dumps({"input_ids": row}) + "\n")


def make_checkpoint(build, work):
    if (work / "rows.jsonl").exists():
        return
    subprocess.run([build / "examples" / "make_tiny_checkpoint", "--shape", "qwen3-1.7b", "--dtype",
                    "bf16", "--output", work / "model"],
                   check=True, timeout=300, stdout=subprocess.DEVNULL)
    write_rows(work / "rows.jsonl")


def stop(process):
    """Ends the process and all that it has started."""
    for how in signal.SIGTERM, signal.SIGKILL:
        try:
            os.killpg(process.pid, how)
            process.wait(5)
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            pass
        return


class Clocks:
    """Of the sheet's GPUs that compute while a run is under way; others may, too."""

    def __init__(self):
        self.clocks, self.watts = [], []
        self.others = set()
        self.degrees = {}  # by GPU: a hot one is slower, and the others wait for it

    def look(self):
        fields = "clocks.sm", "power.draw", "utilization.gpu", "temperature.gpu"
        found = [list(map(number, of)) for of in query(*fields) or [] if len(of) == len(fields)]
        ours = visible(range(len(found)))
        for gpu, (clock, watts, use, degrees) in enumerate(found):
            if not (clock and watts and use and use >= 90):
                continue
            if gpu not in ours:
                self.others.add(gpu)
            else:
                self.clocks.append(clock)
                self.watts.append(watts)
                if degrees is not None:
                    self.degrees.setdefault(gpu, []).append(degrees)

    def figures(self):
        if not self.clocks:
            return {}
        return {"clock_mhz": {"median": statistics.median(self.clocks), "least": min(self.clocks),
                              "most": max(self.clocks)},
                "power_w": statistics.median(self.watts),
                "hottest_c": [max(of) for _, of in sorted(self.degrees.items())],
                "other_gpus": len(self.others)}


def execute(command, log, limit, clocks):
    """Returns the exit status, or None if the command took longer than limit seconds."""
    with open(f"{log}.out", "w") as out, open(f"{log}.err", "w") as err:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                   start_new_session=True)
        end, pause = time.monotonic() + limit, 1
        try:
            while True:
                try:
                    return process.wait(max(0, min(end - time.monotonic(), pause)))
                except subprocess.TimeoutExpired:
                    clocks.look()
                if time.monotonic() >= end:
                    return None
                pause = SAMPLE_SECONDS
        finally:
            stop(process)


def last_line(log):
    for suffix in ".err", ".out":
        lines = pathlib.Path(log + suffix).read_text(errors="replace").strip().splitlines()
        if lines:
            return lines[-1][-300:]
    return ""


class Sheet:
    def __init__(self, arguments, work):
        self.arguments = arguments
        self.build, self.work = arguments.build.resolve(), work
        self.out = arguments.out.resolve()
        self.file = self.out / "sheet.jsonl"
        (self.out / "logs").mkdir(parents=True, exist_ok=True)
        self.begin = time.monotonic()
        there = query("name", "uuid", "driver_version", "memory.total", "power.limit",
                      "clocks.max.sm") or []
        gpus = visible(there)
        if not gpus:
            sys.exit("sheet: nvidia-smi finds no GPU that CUDA shows")
        self.gpus, self.machine = describe_gpus(gpus, len(there)), describe_machine(gpus)
        self.commit, self.commit_date = (
            (arguments.commit, git_date(arguments.commit)) if arguments.commit else find_commit())
        self.lines = []
        if self.file.exists():
            self.lines = [json.loads(line) for line in self.file.read_text().splitlines()]
        self.wrong = 0

    def runs(self):
        wanted = (self.arguments.only or "*").split(",")
        for run in runs.list_runs(self.build, self.work, self.gpus["count"],
                                  self.arguments.torch_bench, sys.executable):
            if any(fnmatch.fnmatchcase(run.name, pattern) for pattern in wanted):
                yield run

    def left(self):
        return self.arguments.seconds - (time.monotonic() - self.begin)

    def earlier(self, run):
        """The lines of this run on such GPUs, of any commit."""
        return [line for line in self.lines
                if line["name"] == run.name and line["gpu"]["name"] == self.gpus["name"]]

    def holds(self, run):
        settled = ("ok",) if self.arguments.again else ("ok", "failed", "timeout")
        return any(line["commit"] == self.commit and line["status"] in settled
                   for line in self.earlier(run))

    def needs(self, run):
        """The seconds that a run takes: as it took, or as we believe."""
        for line in reversed(self.earlier(run)):
            if line["status"] == "ok":
                return 1.1 * line["seconds"]
            if line["status"] == "out of time":
                return max(run.seconds, 1.5 * line["seconds"])
        return run.seconds

    def reason_to_skip(self, run, needed):
        program = pathlib.Path(str(run.command[0]))
        if run.lacks:
            return run.lacks
        if run.kind == "torch" and importlib.util.find_spec("torch") is None:
            return f"{sys.executable} has no torch"
        if program.is_absolute() and not program.exists():
            return f"there is no {program}"
        if run.host_gib > self.machine["memory_gib"]:
            return (f"needs a host of {run.host_gib:.0f} GiB, this one has "
                    f"{self.machine['memory_gib']:.0f}")
        if needed > self.left():
            return f"needs {needed:.0f} s, {max(0, self.left()):.0f} s are left"
        return None

    def write(self, line):
        self.lines.append(line)
        with open(self.file, "a") as out:
            out.write(json.dumps(line) + "\n")

    def tell(self, run, text):
        used = time.monotonic() - self.begin
        print(f"[{used:.0f} of {self.arguments.seconds:.0f} s] {run.name}: {text}",
              file=sys.stderr, flush=True)

    def measure(self, run):
        """Runs it, whatever happens. Returns its line; Ctrl-C ends the sheet after that."""
        needed = self.needs(run)
        command = [str(word) for word in run.command]
        line = {"name": run.name, "kind": run.kind, "commit": self.commit,
                "commit_date": self.commit_date, "date": now(), "machine": self.machine,
                "gpu": self.gpus | {"used": run.gpus},
                "command": self.shown(command)}
        reason = self.reason_to_skip(run, needed)
        if reason:
            return line | {"status": "skipped", "reason": reason}
        # What takes far longer than it should hangs.
        limit = min(2 * needed + 60, self.arguments.limit)
        cut = limit > self.left()
        log = f"{self.out}/logs/{run.name}.{self.commit}"
        if self.arguments.traces and run.kind == "train":
            command += ["--trace", f"{log}.trace.json"]
        clocks, begin = Clocks(), time.monotonic()
        try:
            if run.checkpoint:
                make_checkpoint(self.build, self.work)
            code = execute(command, log, min(limit, self.left()), clocks)
            if code is None:
                line |= {"status": "out of time" if cut else "timeout"}
            elif code == SKIPPED:
                line |= {"status": "skipped", "reason": last_line(log)}
            else:
                line |= {"status": "failed" if code else "ok"}
            line |= {"exit_status": code}
        except KeyboardInterrupt:
            line |= {"status": "interrupted"}
        except (OSError, subprocess.SubprocessError) as error:
            line |= {"status": "failed", "reason": str(error)}
        line |= {"seconds": round(time.monotonic() - begin, 2)} | clocks.figures()
        if line["status"] in ("ok", "failed") and "exit_status" in line:
            self.read_figures(run, log, line)
        return line

    def read_figures(self, run, log, line):
        """A run that has failed may have figures all the same. One without is not ok."""
        try:
            text = (run.report or pathlib.Path(log + ".out")).read_text(errors="replace")
            line["figures"] = figures.READERS[run.kind](text)
        except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
            line["reason"] = f"no figures: {error!r}"
        if line["status"] == "failed":
            line["reason"] = last_line(log)
        elif "figures" not in line:
            line["status"] = "failed"

    def shown(self, command):
        """As one types it in a build of the root's: without this machine's folders."""
        text = shlex.join(command)
        for folder, name in (self.build, "build"), (self.work, "WORK"), (SOURCE, "."):
            text = text.replace(str(folder), name)
        if self.arguments.torch_bench:
            text = text.replace(str(self.arguments.torch_bench), self.arguments.torch_bench.name)
        return text.replace(sys.executable, "python3")

    def go(self):
        for run in self.runs():
            if self.holds(run):
                self.tell(run, "held already")
                continue
            line = self.measure(run)
            self.write(line)
            text = line["status"]
            if "seconds" in line:
                text += f" after {line['seconds']:.1f} s"
            found = line.get("figures", {})
            if "tokens_per_second" in found:
                text += f", {found['tokens_per_second']:,.0f} tokens/s"
            if "reason" in line:
                text += f": {line['reason']}"
            self.tell(run, text)
            if line["status"] == "interrupted":
                return 130
            self.wrong += line["status"] in ("failed", "timeout")
        return 1 if self.wrong else 0


def main():
    parser = argparse.ArgumentParser(
        prog="bench/sheet.sh", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="a build with a GPU: its bench/, examples/")
    parser.add_argument("out", type=pathlib.Path, help="the folder of sheet.jsonl and logs")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="that all of it may take")
    parser.add_argument("--limit", type=float, default=float("inf"), help="that one run may take")
    parser.add_argument("--only", metavar="NAME,...", help="these runs; names may have * and ?")
    parser.add_argument("--again", action="store_true", help="run again what has failed")
    parser.add_argument("--list", action="store_true", help="print names, seconds and commands")
    parser.add_argument("--traces", action="store_true", help="keep timelines of training in OUT/logs")
    parser.add_argument("--commit", help="that BUILD is of; else this checkout's")
    parser.add_argument("--torch-bench", type=pathlib.Path, metavar="FILE")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    arguments.out.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=arguments.out, prefix="work-") as work:
            sheet = Sheet(arguments, pathlib.Path(work).resolve())
            if arguments.list:
                for run in sheet.runs():
                    command = sheet.shown([str(word) for word in run.command])
                    print(f"{run.name}  {sheet.needs(run):.0f} s  {command}")
                return 0
            return sheet.go()
    except KeyboardInterrupt:  # between two runs
        return 130


if __name__ == "__main__":
    sys.exit(main())
