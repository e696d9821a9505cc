#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The roundpipe authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares this library with Hugging Face transformers on random tiny checkpoints.

For each case, transformers makes a checkpoint of random weights, computes logits, loss and gradients
of a batch in fp32, and trains three steps. The program reads the checkpoint's folder, computes the
same, compares, and writes the trained weights to the folder `trained`, which transformers reads.

    parity.py --program PROGRAM [--folder FOLDER] [CASE...]

Needs torch, safetensors, and transformers 5 or later.
"""

import argparse
import copy
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
import transformers
from safetensors.torch import save_file

ROWS = 2
LENGTH = 23
STEPS = 3
TOLERANCE = 1e-4

# The sizes of most cases; the others have sizes that are no multiples of anything.
SIZES = dict(
    vocab_size=96,
    hidden_size=48,
    intermediate_size=80,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    rms_norm_eps=1e-5,
)
ODD_SIZES = dict(
    SIZES,
    vocab_size=61,
    hidden_size=35,
    intermediate_size=53,
    num_attention_heads=5,
    num_key_value_heads=1,
    head_dim=14,
)
YARN = dict(
    rope_type="yarn",
    rope_theta=1000.0,
    factor=4.0,
    original_max_position_embeddings=32,
    beta_fast=1.0,
    beta_slow=0.1,
)
LLAMA3 = dict(
    rope_type="llama3",
    rope_theta=1000.0,
    factor=8.0,
    original_max_position_embeddings=32,
    low_freq_factor=0.5,
    high_freq_factor=2.0,
)
LINEAR = dict(rope_type="linear", rope_theta=500.0, factor=3.0)


def cases():
    """Name -> configuration."""
    from transformers import LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config

    return {
        "llama": LlamaConfig(**SIZES),
        "llama_biased_tied_linear": LlamaConfig(
            **SIZES,
            attention_bias=True,
            mlp_bias=True,
            tie_word_embeddings=True,
            rope_parameters=LINEAR,
        ),
        "llama_odd_llama3": LlamaConfig(**ODD_SIZES, rope_parameters=LLAMA3),
        "llama_yarn": LlamaConfig(**SIZES, rope_parameters=YARN),
        "qwen2": Qwen2Config(**SIZES),
        "qwen2_tied_late_window_yarn": Qwen2Config(
            **SIZES,
            tie_word_embeddings=True,
            use_sliding_window=True,
            sliding_window=6,
            max_window_layers=1,
            rope_parameters=dict(YARN, truncate=False),
        ),
        "qwen3_tied": Qwen3Config(**SIZES, head_dim=20, tie_word_embeddings=True),
        "qwen3_odd_biased_window_yarn": Qwen3Config(
            **ODD_SIZES,
            attention_bias=True,
            use_sliding_window=True,
            sliding_window=4,
            layer_types=["full_attention", "full_attention", "sliding_attention"],
            rope_parameters=dict(YARN, mscale=0.8, mscale_all_dim=0.5),
        ),
        "qwen3_llama3": Qwen3Config(**SIZES, head_dim=12, rope_parameters=LLAMA3),
        "mistral_window": MistralConfig(**SIZES, sliding_window=7),
        "mistral_odd_tied_linear": MistralConfig(
            **ODD_SIZES, sliding_window=None, tie_word_embeddings=True, rope_parameters=LINEAR
        ),
        "mistral_window_of_two_yarn": MistralConfig(
            **SIZES, sliding_window=2, rope_parameters=dict(YARN, attention_factor=1.25)
        ),
    }


def randomize(model):
    """Random values for all parameters, so that each matters."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("norm.weight"):
                parameter.copy_(1 + 0.2 * torch.randn_like(parameter))
            elif parameter.ndim == 1:
                parameter.copy_(0.3 * torch.randn_like(parameter))
            elif "embed_tokens" in name and not model.config.tie_word_embeddings:
                parameter.copy_(torch.randn_like(parameter))
            else:
                parameter.copy_(torch.randn_like(parameter) / parameter.shape[1] ** 0.5)


def adamw(parameters, tied):
    """As the library groups parameters: matrices decay, but for the table of tokens.

    Adam divides a gradient by its own size. With an epsilon below the rounding of gradients, here
    about 1e-8, elements whose gradient is nearly 0 would move at random in either library.
    """
    decayed, exempt = [], []
    for name, parameter in parameters.items():
        exempts = parameter.ndim == 1 or "embed_tokens" in name or (tied and "lm_head" in name)
        (exempt if exempts else decayed).append(parameter)
    groups = [dict(params=decayed, weight_decay=0.1), dict(params=exempt, weight_decay=0.0)]
    return torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), eps=1e-6)


def make(config, folder, seed):
    """Writes a checkpoint of random weights. Returns the model."""
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    model = model.float().train()
    randomize(model)
    model.save_pretrained(folder)
    return model


def expect(model, folder):
    """Writes what transformers computes of the model, and of three steps. Returns the batch."""
    tied = model.config.tie_word_embeddings
    tokens = torch.randint(model.config.vocab_size, (ROWS, LENGTH))
    labels = tokens.clone()
    labels[0, :5] = -100
    labels[1, 9] = -100
    expected = {"tokens": tokens.int(), "labels": labels.int()}
    trained = {  # an adapter's file does not name the adapter
        name.replace(".default.", "."): parameter
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    }
    optimizer = adamw(trained, tied)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        output = model(input_ids=tokens, labels=labels, use_cache=False)
        output.loss.backward()
        losses.append(output.loss.detach())
        if step == 0:
            expected["logits"] = output.logits.detach()
            for name, parameter in trained.items():
                expected["gradient." + name] = parameter.grad.clone()
        optimizer.step()
    expected["losses"] = torch.stack(losses)
    for name, parameter in trained.items():
        expected["trained." + name] = parameter.detach()
    save_file({k: v.contiguous().clone() for k, v in expected.items()}, folder / "expected.safetensors")
    return tokens, labels


def same_loss(what, model, folder, batch):
    """Whether the model has the loss that the program printed for what it wrote."""
    tokens, labels = batch
    with torch.no_grad():
        theirs = model(input_ids=tokens, labels=labels, use_cache=False).loss.item()
    ours = float((folder / "trained" / "loss.txt").read_text())
    print(f"  {what}: loss {theirs:.7f}, in the library {ours:.7f}")
    return abs(theirs - ours) <= TOLERANCE * abs(theirs)


def opened(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    )


def check(program, name, config, folder, seed):
    """Whether one case agrees."""
    batch = expect(make(config, folder, seed), folder)
    done = subprocess.run([program, str(folder), str(TOLERANCE)])
    return done.returncode == 0 and same_loss(
        "trained weights in transformers", opened(folder / "trained"), folder, batch
    )


def run(known, check):
    """Runs the cases of the command line. Returns the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, help="interop.parity")
    parser.add_argument("--folder", type=pathlib.Path, help="keeps the checkpoints")
    parser.add_argument("case", nargs="*")
    arguments = parser.parse_args()
    torch.use_deterministic_algorithms(True)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    print(f"torch {torch.__version__}, transformers {transformers.__version__}")
    failed = []
    with tempfile.TemporaryDirectory() as temporary:
        root = arguments.folder or pathlib.Path(temporary)
        for seed, name in enumerate(known):
            if arguments.case and name not in arguments.case:
                continue
            folder = root / name
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            print(name, flush=True)
            if not check(arguments.program, name, copy.deepcopy(known[name]), folder, seed):
                failed.append(name)
    print("failed: " + ", ".join(failed) if failed else "all agree")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(run(cases(), check))
