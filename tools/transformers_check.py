#!/usr/bin/env python3
"""Compares imports and exports with the transformers package, which must be installed beside torch and safetensors:

    python3 tools/transformers_check.py build/release/siamese

For each architecture: a random model of it is saved by transformers, converted without --from, asked by `siamese probe`,
converted back, and loaded by transformers again. Prints the largest difference of a logit, relative to the largest, each
way; exit code 1 when one is past 2e-5 (float32) or a bit of a weight has changed.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, Olmo2Config, Qwen2Config

SHAPE = {
    "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 101, "max_position_embeddings": 64, "tie_word_embeddings": False,
    "bos_token_id": None, "eos_token_id": None, "pad_token_id": None,
}  # fmt: skip
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 48,
}  # fmt: skip
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 300}
CASES = {
    "llama": LlamaConfig(**SHAPE),
    "llama, llama3": LlamaConfig(**SHAPE, rope_parameters=LLAMA3),
    "llama, yarn": LlamaConfig(**SHAPE, rope_parameters=YARN),
    "llama, yarn with arguments": LlamaConfig(
        **SHAPE, rope_parameters=YARN | {"beta_fast": 16.0, "beta_slow": 2.0, "attention_factor": 1.3, "truncate": False}
    ),
    "qwen2": Qwen2Config(**SHAPE),
    "qwen2, tied, yarn": Qwen2Config(**SHAPE | {"tie_word_embeddings": True}, rope_parameters=YARN),
    "mistral": MistralConfig(**SHAPE, sliding_window=None),
    "mistral, window 24": MistralConfig(**SHAPE, sliding_window=24),
    "mistral, window 5": MistralConfig(**SHAPE, sliding_window=5),
    "olmo2": Olmo2Config(**SHAPE),
}


def siamese(binary: str, *words: object) -> None:
    run = subprocess.run([binary, *map(str, words)], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: exit {run.returncode}: {run.stderr.strip()}")


def difference(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()


def check(name: str, config, binary: str, folder: Path) -> tuple[float, float, int]:
    torch.manual_seed(len(name))
    model = AutoModelForCausalLM.from_config(config).float().eval()
    with torch.no_grad():
        for key, value in model.named_parameters():
            noise = torch.randn_like(value)
            value.copy_(noise / value.shape[-1] ** 0.5 if value.dim() > 1 else 0.3 * noise + (not key.endswith("bias")))
    tokens = torch.randint(config.vocab_size, (2, 24))
    model.save_pretrained(folder / "theirs")
    save_file({"tokens": tokens}, folder / "inputs.safetensors")
    siamese(binary, "convert", folder / "theirs", "--to", "siamese", "-o", folder / "ours")
    siamese(binary, "probe", folder / "ours", "--inputs", folder / "inputs.safetensors", "--out", folder / "found.safetensors")
    layout = {"llama": "hf-llama", "qwen2": "hf-qwen2", "mistral": "hf-mistral", "olmo2": "hf-olmo2"}[config.model_type]
    siamese(binary, "convert", folder / "ours", "--to", layout, "-o", folder / "back")
    again = AutoModelForCausalLM.from_pretrained(folder / "back").float().eval()
    with torch.no_grad():
        theirs, back = model(tokens).logits, again(tokens).logits
    before, after = model.state_dict(), again.state_dict()
    changed = sum(not torch.equal(before[key], after[key]) for key in before)
    return difference(load_file(folder / "found.safetensors")["output"], theirs), difference(back, theirs), changed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    arguments = parser.parse_args()
    bad = 0
    for name, config in CASES.items():
        with tempfile.TemporaryDirectory(prefix="transformers_check_") as folder:
            try:
                there, back, changed = check(name, config, arguments.binary, Path(folder))
            except RuntimeError as error:
                print(f"{name:28} {error}")
                bad += 1
                continue
        fine = there < 2e-5 and back < 2e-5 and changed == 0
        bad += not fine
        print(f"{name:28} probe {there:.1e}, loaded again {back:.1e}, {changed} weights changed{'' if fine else '  WRONG'}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
