#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The roundpipe authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the tables of docs/numbers.md from lines of sheet.sh.

    bench/sheet/tables.py [--page docs/numbers.md] OUT/sheet.jsonl...

Prints them, or writes those that the page names in <!-- sheet: NAME... --> between that line and
<!-- end of sheet -->. A figure stands once: of all lines of a run on one kind of GPU that are ok, the
newest commit's, and one measured while no other GPU of the host was busy comes first. Ratios are of
runs of one commit on one machine.
"""

import argparse
import json
import pathlib
import re
import statistics
import sys
import textwrap


def precedence(line):
    """Of two lines of a run, the greater stands: the newer, but first the one that no busy GPU beside
    it could slow. Tests pass or fail anywhere."""
    undisturbed = line["kind"] == "tests" or not line.get("other_gpus")
    return undisturbed, line["commit_date"] or line["date"], line["date"]


def newest(lines):
    """The lines that stand, in the order in which their runs first appeared."""
    best = {}
    for line in lines:
        # Tests that fail are a result, too.
        if line["status"] == "ok" or (line["kind"] == "tests" and "figures" in line):
            key = line["name"], line["gpu"]["name"]
            if key not in best or precedence(line) >= precedence(best[key]):
                best[key] = line
    return list(best.values())


def percent(value, digits=1, sign=False):
    return "" if value is None else f"{value:{'+' if sign else ''}.{digits}f} %"


def forecasts(found):
    both = found["forecast_percent"], found["warm_up_forecast_percent"]
    return ", ".join(percent(value, sign=True) for value in both if value is not None)


def stages(found):
    if not found["forward_stages"] and len(found["backward_stages"]) == 1:
        return "one fused"
    layers = ", checkpoints of layers" if found["checkpoints"] == "layers" else ""
    return f"{len(found['forward_stages'])} + {len(found['backward_stages'])}{layers}"


def cut(found):
    rows = found["batch"] // (found["micro_batches"] * found["rounds"])
    return f"{found['micro_batches']} x {rows}, {found['rounds']}"


CAPTIONS = {
    "machines": "The machines of these tables.",
    "training": """Training with 24 GiB a GPU (`train_throughput`). *M_R* is micro-batches of a round;
        *saved* the share of the bytes of saves that the host keeps, *recomputed* that of all FLOPs;
        *exposed* transfer stalls; the forecasts are of the costs measured before step 1 and of the
        warm-up; *peak* is what the driver counts; MFU is against a product of 8192 x 8192 matrices;
        *slowest GPU* is how much longer one computes than the mean of all, which wait for it.
        Ratios are of runs of one commit on one machine.""",
    "ranks": "Ranks of one GPU each under mpirun, beside one alone with a rank's share of cores.",
    "parts": "What each part is worth: the run above with one thing changed.",
    "sweep": "Budgets (`budget_sweep`), beside full recomputation and plain offloading.",
    "resident": """Everything on the device: a plain loop (`plain_loop`), and PyTorch with
        torch.compile; beside them what `1.7b-x1` does with 24 GiB.""",
    "link": "The link by the size of a copy (`bench.transfer`), GB/s of each GPU.",
    "activation": """What a 16 MiB upload waits for while parameters go up (`bench.transfer`), beside its
        time on an idle link; *kept* is what is left of the link to parameters.""",
    "layers": """Layers against the bare products and attention at their shapes, element-wise operations
        against a copy, pairs of passes beside copies both ways against pairs alone
        (`bench.layers`).""",
    "finetune": "A checkpoint of Qwen3 1.7B (`finetune`), beside the same training without files.",
    "tests": "The tests on GPUs (`ctest`).",
}

PLAN = ["M_R x rows, rounds", "stages", "saved, recomputed", "tokens/s", "exposed", "forecasts",
        "peak", "host: ledger, resident"]


def plan_cells(found):
    return [cut(found), stages(found),
            f"{percent(100 * found['saved_share'])}, {percent(100 * found['recomputed_flops_share'])}",
            f"{found['tokens_per_second']:,.0f}", percent(found["exposed_percent"], 2),
            forecasts(found), f"{found['driver_peak_gib']:.2f} GiB",
            f"{found['host_ledger_gib']:.1f}, {found['resident_gib']:.1f} GiB"]


def slowest(found):
    """How much longer the slowest of several GPUs computes than their mean."""
    computing = found.get("device_computing_s", [])  # older lines have none
    return f"{100 * max(computing) / statistics.mean(computing) - 100:+.1f} %" if computing[1:] else ""


# The last words of names of runs that leave one thing out.
PART = re.compile(r"(.+)-(sync|uniform|looped-bfs|blocking|unplanned)-x\d+")


class Page:
    def __init__(self, lines):
        self.lines = newest(lines)
        ids = dict.fromkeys(line["machine"]["id"] for line in self.lines)
        self.numbers = {id_: number for number, id_ in enumerate(ids, 1)}

    def of(self, *kinds):
        return [line for line in self.lines if line["kind"] in kinds]

    def where(self, line):
        """Commit, date and machine of a row, and whether other GPUs of the host computed then."""
        others = line.get("other_gpus", 0)
        beside = f", beside {others} busy GPU{'s' * (others > 1)}" if others else ""
        machine = self.numbers[line["machine"]["id"]]
        return f"{line['commit']}, {line['date'][:10]}, machine {machine}{beside}"

    def beside(self, line, name):
        """The line of another run of the same commit on the same machine."""
        for other in self.lines:
            if (other["name"] == name and other["commit"] == line["commit"]
                    and other["machine"]["id"] == line["machine"]["id"]):
                return other
        return None

    def ratio(self, line, name):
        other = line and self.beside(line, name)
        if other is None or other is line:
            return None
        return line["figures"]["tokens_per_second"] / other["figures"]["tokens_per_second"]

    # Each table: its headings (a : in front means a column of numbers), and its rows.

    def training(self):
        lines = [line for line in self.of("train") if not PART.fullmatch(line["name"])]
        heads = ["run", "GPUs", "shape, blocks", ":context", ":sequences", "states", *PLAN,
                 ":s an iteration", "TFLOP/s a GPU, MFU", ":busy", ":slowest GPU",
                 ":of one GPU", ":of all recomputed", "measured"]
        rows = []
        for line in lines:
            found, stem = line["figures"], line["name"].rsplit("-x", 1)[0]
            one = self.ratio(line, f"{stem}-x1")
            all_ = self.ratio(line, f"{stem}-recompute-all-x{line['gpu']['used']}")
            rows.append([
                f"`{line['name']}`", f"{line['gpu']['used']} x {line['gpu']['name']}",
                f"{found['shape']}, {found['layers']}", found["context"], found["batch"],
                found["states"], *plan_cells(found), f"{found['iteration_s']:.3f}",
                f"{found['model_tflops_per_device']:.0f}, {percent(100 * found['mfu'])} of "
                f"{found['peak_tflops']:.0f}",
                percent(found["busy_percent"]), slowest(found), f"{one:.2f}" if one else "",
                f"{all_:.3f}" if all_ else "", self.where(line)])
        return heads, rows

    def parts(self):
        lines = [line for line in self.of("train") if PART.fullmatch(line["name"])]
        rows = []
        for line in lines:
            found, stem = line["figures"], PART.fullmatch(line["name"])[1]
            share = self.ratio(line, f"{stem}-x{line['gpu']['used']}")
            rows.append([f"`{line['name']}`", f"{found['tokens_per_second']:,.0f}",
                         percent(share and 100 * share), percent(found["busy_percent"]),
                         percent(found["exposed_percent"], 2),
                         ", ".join(f"{cause} {percent(value)}" for cause, value
                                   in found["bubble_by_cause_percent"].items() if value >= 1),
                         self.where(line)])
        return ["run", ":tokens/s", ":of the chosen plan", ":busy", ":exposed",
                "idle for a percent or more", "measured"], rows

    def ranks(self):
        rows = []
        for line in self.of("ranks"):
            found = line["figures"]
            one = self.ratio(line, "1.7b-rank-x1")
            rows.append([f"`{line['name']}`", found["ranks"], f"{found['tokens_per_second']:,.0f}",
                         f"{one / found['ranks']:.2f}" if one else "", self.where(line)])
        return ["run", ":ranks", ":tokens/s", ":a rank, of one alone", "measured"], rows

    def sweep(self):
        heads = ["run", "shape, blocks", "budget", "plan", *PLAN, ":of recomputation",
                 ":of offloading", "measured"]
        rows = []
        for line in self.of("sweep"):
            for found in line["figures"]["rows"]:
                if "refusal" in found:
                    continue
                ratios = [found.get(f"ratio_to_{plan}") for plan in ("recomputation", "offloading")]
                rows.append([f"`{line['name']}`", f"{found['shape']}, {found['layers']}",
                             found["budget"], found["plan"], *plan_cells(found),
                             *(f"{ratio:.3f}" if ratio else "" for ratio in ratios),
                             self.where(line)])
        return heads, rows

    def resident(self):
        rows = []
        for line in self.of("plain", "torch"):
            found = line["figures"]
            against = self.ratio(self.beside(line, "1.7b-x1"), line["name"])
            rows.append([f"`{line['name']}`", f"{found['tokens_per_second']:,.0f}",
                         f"{found['peak_gib']:.1f} GiB", f"{against:.3f}" if against else "",
                         self.where(line)])
        return ["run", ":tokens/s", ":peak", ":24 GiB (`1.7b-x1`) has", "measured"], rows

    def link(self):
        sizes = [64 * 4 ** i for i in range(6)]
        rates = {}  # a machine of several GPUs measures one, too: the newest stands
        for line in sorted(self.of("link"), key=precedence):
            for name, counters in line["figures"].items():
                devices, way, kib = map(int, re.search(
                    r"devices:(\d+)/direction:(\d+)/KiB:(\d+)", name).groups())
                for counter, rate in counters.items():
                    what = ("both: " if way == 3 else "") + counter.removesuffix("_GBps")
                    of_size = rates.setdefault((f"{devices} x {line['gpu']['name']}", what), {})
                    of_size |= {kib: f"{rate:.1f}", "where": self.where(line)}
        rows = [[*key, *(of_size.get(kib, "") for kib in sizes), of_size["where"]]
                for key, of_size in rates.items()]
        heads = ["at once", "", *(f":{kib} KiB" if kib < 1024 else f":{kib // 1024} MiB"
                                  for kib in sizes), "measured"]
        return heads, rows

    def activation(self):
        rows = [[name.split("/", 2)[2].removesuffix("/iterations:1/manual_time"),
                 f"{found['median_us']:.0f} us", f"{found['median_x']:.2f}",
                 f"{found['p99_x']:.2f}", f"{found['kept']:.3f}", self.where(line)]
                for line in self.of("activation") for name, found in line["figures"].items()]
        return ["activation/", ":median", ":of idle", ":99th percentile", ":kept",
                "measured"], rows

    def layers(self):
        rows = []
        for line in self.of("layers"):
            for name, found in line["figures"].items():
                for key, share in found.items():
                    part, of = re.fullmatch(r"(.+?)_(of_\w+|ms|bare_ms|GB/s)", key).groups()
                    if of in ("of_bare", "of_copy", "of_alone"):
                        bare, own = (found.get(f"{part}_{of}") for of in ("bare_ms", "ms"))
                        rows.append([f"{name.split('/')[0]}, {part}",
                                     "" if bare is None else f"{bare:.2f}",
                                     "" if own is None else f"{own:.2f}",
                                     percent(100 * share), self.where(line)])
        return ["", ":bare ms", ":layer ms", ":of bare, of a copy, or of alone", "measured"], rows

    def finetune(self):
        rows = []
        for line in self.of("finetune"):
            found = line["figures"]
            beside = self.beside(line, "finetune-none-x1")
            rows.append([f"`{line['name']}`", f"{found['load_seconds']:.3f} s",
                         f"{found['tokens_per_second']:,.0f}",
                         f"{beside['figures']['tokens_per_second']:,.0f}" if beside else "",
                         f"{found['first_loss']:.3f}, {found['last_loss']:.3f}",
                         f"{found['evaluation_loss']:.5f}", self.where(line)])
        return ["run", ":loading", ":tokens/s", ":`train_throughput`",
                "first and last loss", ":loss afterwards", "measured"], rows

    def tests(self):
        rows = []
        for line in self.of("tests"):
            found = line["figures"]
            rows.append([f"`{line['name']}`", f"{line['gpu']['used']} x {line['gpu']['name']}",
                         found["tests"],
                         found["tests"] - len(found["not_passed"]) - len(found["skipped"]),
                         ", ".join(found["not_passed"]), ", ".join(found["skipped"]),
                         self.where(line)])
        return ["run", "GPUs", ":tests", ":passed", "failed", "skipped", "measured"], rows

    def machines(self):
        rows = []
        for id_, number in self.numbers.items():
            of = [line for line in self.lines if line["machine"]["id"] == id_]
            machine, gpu = of[0]["machine"], of[0]["gpu"]
            clocks = [line["clock_mhz"] for line in of if "clock_mhz" in line]
            degrees = [of_gpu for line in of for of_gpu in line.get("hottest_c", [])]
            of_more = f" of {gpu['there']}" if gpu.get("there", gpu["count"]) > gpu["count"] else ""
            rows.append([number, f"{gpu['count']}{of_more} x {gpu['name']}",
                         f"{machine['cores']} of {machine['cpu']}",
                         f"{machine['memory_gib']:.0f} GiB", gpu["driver"],
                         f"{gpu['power_limit_w']:.0f} W" if gpu["power_limit_w"] else "",
                         f"{min(c['least'] for c in clocks):.0f} to "
                         f"{max(c['most'] for c in clocks):.0f} MHz" if clocks else "",
                         f"{max(degrees):.0f} C" if degrees else ""])
        return [":machine", "GPUs", "cores", ":memory", "driver", ":power limit",
                "clocks while they compute", ":hottest"], rows

    def table(self, name):
        """As Markdown, below what its columns mean; empty if no line is for it."""
        heads, rows = getattr(self, name)()
        if not rows:
            return ""
        text = [textwrap.fill(" ".join(CAPTIONS[name].split()), 118), "",
                "| " + " | ".join(head.lstrip(":") for head in heads) + " |",
                "|" + "|".join("--:" if head.startswith(":") else "---" for head in heads) + "|"]
        text += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
        return "\n".join(text) + "\n"


def fill(text, page):
    """The page's text with its tables."""
    marker = re.compile(r"(<!-- sheet: ([\w ]+) -->\n).*?(<!-- end of sheet -->)", re.DOTALL)
    names = [name for found in marker.finditer(text) for name in found[2].split()]
    unknown = set(names) - set(CAPTIONS)
    if unknown:
        sys.exit(f"tables: there is no table {', '.join(sorted(unknown))}")
    for name in CAPTIONS:
        if name not in names and page.table(name):
            print(f"tables: the page has no place for the table {name}", file=sys.stderr)

    def tables(found):
        made = [table for name in found[2].split() if (table := page.table(name))]
        return "\n".join([found[1], *made, found[3]]) if made else found[1] + found[3]

    return marker.sub(tables, text)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--page", type=pathlib.Path, help="write there, not to the standard output")
    parser.add_argument("lines", nargs="+", type=pathlib.Path, help="sheet.jsonl")
    arguments = parser.parse_args()
    page = Page([json.loads(line) for file in arguments.lines
                 for line in file.read_text().splitlines()])
    if arguments.page:
        arguments.page.write_text(fill(arguments.page.read_text(), page))
        return
    for name in CAPTIONS:
        if table := page.table(name):
            print(table)


if __name__ == "__main__":
    main()
