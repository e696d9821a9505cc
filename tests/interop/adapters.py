#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The roundpipe authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares low-rank adapters of this library with peft's, on random tiny checkpoints.

For each case, transformers makes a checkpoint of random weights, and peft adapters for it, whose
matrices are all random. Both are compared with the library as parity.py does it, and then read back:
the adapters that the program has trained by peft, and its merged weights by transformers alone.

    adapters.py --program PROGRAM [--folder FOLDER] [CASE...]

Needs what parity.py needs, and peft.
"""

import subprocess
import sys
import warnings

import peft
import torch

sys.dont_write_bytecode = True  # beside parity.py
import parity


def cases():
    """Name -> configuration of the model, and of the adapters."""
    known = parity.cases()

    def case(model, **adapter):
        return known[model], peft.LoraConfig(task_type="CAUSAL_LM", **adapter)

    return {
        "llama": case("llama", r=4, lora_alpha=16, target_modules=["q_proj", "v_proj"]),
        "llama_all_odd": case("llama_odd_llama3", r=3, lora_alpha=5, target_modules="all-linear"),
        "llama_biased_tied": case(
            "llama_biased_tied_linear",
            r=5,
            lora_alpha=5,
            target_modules=["model.layers.1.self_attn.o_proj", "down_proj"],
        ),
        "qwen3_rslora_head": case(
            "qwen3_llama3",
            r=4,
            lora_alpha=6,
            use_rslora=True,
            target_modules=["k_proj", "o_proj", "gate_proj", "lm_head"],
        ),
        "qwen3_tied": case("qwen3_tied", r=2, lora_alpha=3, target_modules="all-linear"),
    }


def check(program, name, case, folder, seed):
    """Whether one case agrees."""
    config, adapter = case
    model = peft.get_peft_model(parity.make(config, folder, seed), adapter)
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            if "lora_B" in parameter_name:  # zeros, else
                parameter.copy_(torch.randn_like(parameter) / parameter.shape[1] ** 0.5)
    model.save_pretrained(folder / "adapter")
    batch = parity.expect(model, folder)
    done = subprocess.run([program, str(folder), str(parity.TOLERANCE)])
    if done.returncode != 0:
        return False
    merged = parity.opened(folder / "trained")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # of keys that are missing
        adapted = peft.PeftModel.from_pretrained(parity.opened(folder), folder / "trained_adapter")
    return parity.same_loss("merged weights in transformers", merged, folder, batch) and (
        parity.same_loss("trained adapters in peft", adapted, folder, batch)
    )


if __name__ == "__main__":
    print(f"peft {peft.__version__}")
    sys.exit(parity.run(cases(), check))
