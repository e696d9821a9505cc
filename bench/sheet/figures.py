# SPDX-FileCopyrightText: 2026 The roundpipe authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads figures from what programs print: READERS[kind](text) of a run's kind."""

import json
import re

GIB = 1 << 30


def last_object(text):
    """The JSON object with which the text ends, whatever stands before."""
    decoder = json.JSONDecoder()
    for match in re.finditer(r"^\{", text, re.MULTILINE):
        try:
            value, end = decoder.raw_decode(text, match.start())
        except ValueError:
            continue
        if not text[end:].strip():
            return value
    raise ValueError("the output does not end with JSON")


def percent_off(forecast, measured):
    return None if forecast is None else 100 * (forecast / measured - 1)


def training(report):
    """The figures of train_throughput's report, less ledgers and single layers."""
    keys = """shape layers device devices context batch micro_batches rounds checkpoints
        overlaps_rounds saved_share recomputed_flops_share warmup precision states ranks synchronous
        schedule protocol transfers partition forward_stages backward_stages automatic_s measured_s
        planned_s setup_s period iteration_s median_s tokens_per_second model_tflops_per_device
        peak_tflops mfu device_computing_s busy_percent bubble_by_cause_percent
        upload_bytes_per_second download_bytes_per_second upload_share_both_ways
        download_share_both_ways host_upload_bytes_per_second host_download_bytes_per_second
        host_bytes_per_second host_download_weight host_work_bytes_per_second
        upload_share_beside_work download_share_beside_work loss""".split()
    found = {key: report[key] for key in keys}
    found["iterations"] = len(report["iterations_s"])
    found["exposed_percent"] = report["bubble_by_cause_percent"]["transfer stall"]
    found["forecast_percent"] = percent_off(report["predicted_s"], report["iteration_s"])
    found["warm_up_forecast_percent"] = percent_off(report["predicted_from_warm_up_s"],
                                                    report["iteration_s"])
    budget = report["device_budget_bytes"]
    found["budget_gib"] = budget and budget / GIB
    found["driver_peak_gib"] = max(use["driver_bytes"] for use in report["device_memory"]) / GIB
    for key in "device_arena", "host_ledger", "resident":
        found[key + "_gib"] = report[key + "_bytes"] / GIB
    return found


def train(text):
    return training(last_object(text))


def sweep(text):
    rows = []
    for line in text.splitlines():
        if line.startswith("{"):
            said = json.loads(line)
            row = {key: said[key] for key in ("budget", "plan", "refusal", "faults",
                                              "ratio_to_recomputation", "ratio_to_offloading")
                   if key in said}
            rows.append(row if "refusal" in said else row | training(said))
    if not rows:
        raise ValueError("the output has no line of JSON")
    return {"rows": rows}


def plain(text):
    said = last_object(text)
    keys = """shape layers device context batch rows copies optimizer iteration_s
        tokens_per_second median_tokens_per_second model_tflops_per_device peak_tflops
        mfu""".split()
    return {key: said[key] for key in keys} | {"peak_gib": said["device_bytes"] / GIB}


def torch(text):
    said = json.loads(text.strip().splitlines()[-1])
    return {"tokens_per_second": said["tokens_per_s"], "peak_gib": said["peak_gib"]}


def google(text):
    """The counters of each benchmark. One that has gone wrong is an error."""
    wrong = {"name", "family_index", "per_family_instance_index", "run_name", "run_type",
             "repetitions", "repetition_index", "threads", "iterations", "real_time", "cpu_time",
             "time_unit"}
    found = {}
    for each in last_object(text)["benchmarks"]:
        if each.get("error_occurred"):
            raise ValueError(f"{each['name']}: {each['error_message']}")
        found[each["name"]] = {key: value for key, value in each.items() if key not in wrong}
    return found


def finetune(text):
    said = json.loads(text)
    keys = """seconds load_seconds load_bytes tokens_per_second mfu evaluation_loss
        evaluated_rows device_bytes_peak host_bytes_peak parameters trained_parameters""".split()
    return {key: said[key] for key in keys} | {
        "first_loss": said["losses"][0], "last_loss": said["losses"][-1],
        "steps": len(said["losses"]), "lora": said["options"]["lora"]}


def tests(text):
    found = re.search(r"(\d+)% tests passed, (\d+) tests failed out of (\d+)", text)
    if not found:
        raise ValueError("ctest says no sum")
    ended = re.findall(r"Test +#\d+: (\S+) \.*[ *]*(Passed|Skipped|Failed|Timeout|Not Run)", text)
    return {"tests": int(found[3]), "failed": int(found[2]),
            "skipped": [name for name, how in ended if how == "Skipped"],
            "not_passed": [name for name, how in ended if how not in ("Passed", "Skipped")]}


def ranks(text):
    found = train(text)
    if found["ranks"] < 2:
        raise ValueError("each process trained by itself: the program knows no MPI")
    return found


READERS = {"train": train, "beside": train, "ranks": ranks, "sweep": sweep, "plain": plain,
           "torch": torch, "link": google, "activation": google, "layers": google,
           "finetune": finetune, "tests": tests}
