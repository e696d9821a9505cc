#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The roundpipe authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Opens what examples/finetune writes with transformers and peft.

For each case, make_tiny_checkpoint writes random weights, and finetune trains them, or adapters, on
rows of random tokens. transformers (and peft) must open the folder, with the loss of the same rows
that finetune reports; and greedy generation must give the tokens that generate prints.

    finetune.py --programs FOLDER [--folder FOLDER] [CASE...]

Needs torch, transformers 5 or later, and peft.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import peft
import torch
import transformers

ROWS = 12
CONTEXT = 24
TOLERANCE = 1e-4

# Name -> options of make_tiny_checkpoint and of finetune.
CASES = {
    "llama": ("--architecture llama --bias --rope-scaling llama3", "--no-shuffle"),
    "mistral_window_tied": ("--architecture mistral --window 7 --tied", "--sync"),
    "qwen2_yarn_bf16": (
        "--architecture qwen2 --rope-scaling yarn --dtype bf16 --file-bytes 40KiB",
        "--precision fp32",
    ),
    "qwen3_output_bf16": ("--head-dim 12", "--output-type bf16"),
    "qwen3_lora": ("--rope-scaling linear", "--lora 4 --lora-alpha 8 --rslora"),
    "llama_lora_head": (
        "--architecture llama",
        "--lora 3 --lora-targets [qv]_proj lm_head --lora-dropout 0.1",
    ),
    "qwen3_lora_merged": ("--tied", "--lora 4 --merge"),
}


def write_data(path, seed):
    """Rows of all lengths up to the context, a document each, some with masked labels."""
    draw = random.Random(seed)
    rows = []
    for _ in range(ROWS):
        tokens = [draw.randrange(256) for _ in range(draw.randrange(5, CONTEXT + 1))]
        labels = [-100 if draw.random() < 0.2 else token for token in tokens]
        rows.append({"input_ids": tokens, "labels": labels})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return rows


def loss_of(model, rows):
    """The mean over all predicted tokens of all rows."""
    total, count = 0.0, 0
    with torch.no_grad():
        for row in rows:
            labels = torch.tensor([row["labels"]])
            terms = (labels[:, 1:] != -100).sum().item()
            if terms > 0:
                tokens = torch.tensor([row["input_ids"]])
                total += terms * model(input_ids=tokens, labels=labels).loss.item()
                count += terms
    return total / count


def greedy(model, prompt, count):
    with torch.no_grad():
        made = model.generate(
            input_ids=torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            max_new_tokens=count,
            do_sample=False,
            pad_token_id=0,
        )
    return made[0].tolist()


def run(*command):
    done = subprocess.run(
        [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def load(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    ).eval()


def check(name, programs, folder, seed):
    """Whether all agrees."""
    of_model, of_training = (options.split() for options in CASES[name])
    rows = write_data(folder / "rows.jsonl", seed)
    base, output = folder / "base", folder / "output"
    run(programs / "make_tiny_checkpoint", "--output", base, "--context", 64, "--seed", seed,
        "--initializer-range", 0.2, *of_model)
    run(programs / "finetune", "--model", base, "--data", folder / "rows.jsonl", "--output", output,
        "--packing", "documents", "--context", CONTEXT, "--batch", 4, "--micro-batches", 2,
        "--steps", 6, "--lr", 3e-3, "--json", folder / "report.json", *of_training)
    report = json.loads((folder / "report.json").read_text())
    is_adapter = (output / "adapter_config.json").exists()
    base_model = load(base)
    before = loss_of(base_model, rows)
    model = peft.PeftModel.from_pretrained(base_model, output).eval() if is_adapter else load(output)
    theirs, ours = loss_of(model, rows), report["evaluation_loss"]
    prompt = rows[0]["input_ids"][:5]
    model_options = ["--model", base, "--adapter", output] if is_adapter else ["--model", output]
    printed = run(programs / "generate", *model_options, "--prompt-ids", ",".join(map(str, prompt)),
                  "--tokens", 20, "--precision", "fp32")
    tokens = [int(token) for token in printed.split(",")]
    expected = greedy(model, prompt, 20)
    print(f"{name}: loss {before:.6f}, trained {theirs:.6f}, finetune says {ours:.6f}; "
          f"{len(tokens)} tokens {'agree' if tokens == expected else f'{tokens} != {expected}'}")
    learned = theirs < before - 0.05
    if not learned:
        print(f"{name}: the training has changed nothing")
    return learned and abs(theirs - ours) <= TOLERANCE * abs(theirs) and tokens == expected


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", required=True, type=pathlib.Path, help="build/examples")
    parser.add_argument("--folder", type=pathlib.Path, help="keeps what the programs write")
    parser.add_argument("case", nargs="*")
    arguments = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    failed = []
    with tempfile.TemporaryDirectory() as temporary:
        root = arguments.folder or pathlib.Path(temporary)
        for seed, name in enumerate(CASES, 1):
            if arguments.case and name not in arguments.case:
                continue
            shutil.rmtree(root / name, ignore_errors=True)
            (root / name).mkdir(parents=True)
            if not check(name, arguments.programs, root / name, seed):
                failed.append(name)
    print("failed: " + ", ".join(failed) if failed else "all agree")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
