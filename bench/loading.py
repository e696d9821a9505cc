#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The roundpipe authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How fast finetune loads a checkpoint, and how much memory that takes.

    bench/loading.py --programs build/examples [--shape qwen3-0.6b] [--rounds 3] [MODE...]

Writes random weights in bf16 to a temporary folder. Each round reads the files with dd, from the page
cache, and lets finetune load them: for low-rank adapters, whose base is kept once and as it is in the
files, and for a training of all weights, which keeps an fp32 copy beside that and so writes three bytes
for each that it reads. Each round also writes as many bytes as each mode by memset alone, with a thread
for each CPU: no loading is faster than that. Prints the best of all rounds.

A rate is the files' bytes a second, also where more is written. finetune measures from the open folder,
whose headers are read, to the loaded weights; the pipeline's memory has been written before. dd
measures the whole program.

The memory is what the process has grown by from the plan to the loaded weights (/proc/self/statm),
less the slabs of the emulated device, beside the host bytes of the plan. The files of qwen3-0.6b have
1.2 GB; a training of all weights takes 10.5 GB, and its device 1.5 GiB: all scale with the files.
"""

import argparse
import concurrent.futures
import ctypes
import glob
import json
import mmap
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

# The options of finetune, and the bytes that are written for each of the files.
MODES = {
    "adapters": (["--lora", "8"], 1),
    "all weights": (["--master", "single"], 3),
}


def run(*command):
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)


class Writer:
    """Writes to more memory than caches hold, with a thread for each CPU."""

    part_bytes = 256 << 20

    def __init__(self):
        threads = len(os.sched_getaffinity(0))
        self.pool = concurrent.futures.ThreadPoolExecutor(threads)
        self.parts = [mmap.mmap(-1, self.part_bytes) for _ in range(threads)]
        self.write(threads * self.part_bytes)

    def write(self, size):
        """Writes size bytes. Returns the seconds that this took."""

        def fill(part, rest):
            address = ctypes.addressof(ctypes.c_char.from_buffer(part))
            while rest > 0:
                ctypes.memset(address, 1, min(rest, self.part_bytes))
                rest -= self.part_bytes

        begin = time.monotonic()
        list(self.pool.map(fill, self.parts, [size // len(self.parts)] * len(self.parts)))
        return time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", required=True, type=pathlib.Path, help="build/examples")
    parser.add_argument("--shape", default="qwen3-0.6b")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device-memory", help="4/3 of the files' bytes by default")
    parser.add_argument("mode", nargs="*", help="of: " + ", ".join(MODES) + "; all by default")
    arguments = parser.parse_args()
    modes = {mode: MODES[mode] for mode in arguments.mode or MODES}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        model, data, report = folder / "model", folder / "rows", folder / "report"
        run(arguments.programs / "make_tiny_checkpoint", "--shape", arguments.shape, "--dtype",
            "bf16", "--output", model)
        data.write_text('{"input_ids": [1, 2, 3, 4]}\n')
        files = glob.glob(str(model / "*.safetensors"))
        size = sum(pathlib.Path(file).stat().st_size for file in files)
        device_memory = arguments.device_memory or f"{size * 4 // 3 >> 20}MiB"
        best = dict.fromkeys(["dd", *modes], 0.0)
        bound = dict.fromkeys(modes, 0.0)
        memory = {}
        for _ in range(arguments.rounds):
            begin = time.monotonic()
            for file in files:
                subprocess.run(["dd", f"if={file}", "of=/dev/null", "bs=4M"], check=True,
                               stderr=subprocess.DEVNULL)
            best["dd"] = max(best["dd"], size / (time.monotonic() - begin))
            for mode, (options, written) in modes.items():
                writer = Writer()
                bound[mode] = max(bound[mode], size / writer.write(written * size))
                del writer
                run(arguments.programs / "finetune", "--model", model, "--data", data, "--output",
                    folder / "out", "--steps", 0, "--batch", 1, "--context", 4, "--backend", "host",
                    "--device-memory", device_memory, "--json", report, *options)
                shutil.rmtree(folder / "out")
                said = json.loads(report.read_text())
                best[mode] = max(best[mode], said["load_bytes"] / said["load_seconds"])
                slabs = said["devices"] * said["device_bytes_peak"]
                memory[mode] = (said["resident_growth"] - slabs, said["host_bytes_peak"],
                                said["state_bytes"] - said["load_bytes"])
        print(f"files           {size / 1e9:.3f} GB of {arguments.shape}")
        for name, rate in best.items():
            print(f"{name:15} {rate / 1e9:5.2f} GB/s, {rate / best['dd']:.2f} of dd" +
                  (f", {rate / bound[name]:.2f} of writing alone ({bound[name] / 1e9:.2f})"
                   if name in bound else ""))
        for mode, (grown, planned, _) in memory.items():
            print(f"{mode:15} the process grows by {grown / 1e9:.3f} GB, "
                  f"{grown / planned:.3f} of the plan's {planned / 1e9:.3f}")
        if "adapters" in memory:
            grown, _, beside = memory["adapters"]
            print(f"adapters        that is {(grown - beside) / size:.3f} of the base's bytes "
                  f"beside {beside / 1e9:.3f} GB of adapters' states")


if __name__ == "__main__":
    main()
