#!/usr/bin/env python3
"""lm-eval's `hf` model on a folder that `siamese convert --to hf` wrote, held to the engine's own numbers:

    pip install torch==2.13.0 transformers==5.22.2 lm-eval==0.4.13       # in an environment of its own
    python3 tools/lm_eval_check.py --binary build/release/siamese

Trains a tokenizer and a small model on the documentation of this repository, converts it, and asks lm-eval a task that is
made here, because nothing is fetched: which of two continuations follows 30 words of the documentation. Every
log-likelihood that lm-eval used is compared with the one from the logits of `siamese probe` and with the one from
transformers' own forward pass. Exit code 1 if one differs by more than rounding, or an accuracy does.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")

import lm_eval
import torch
from lm_eval.tasks import TaskManager
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

ROOT = Path(__file__).resolve().parents[1]
CONTEXT, CONTINUATION = 30, 6  # words
TOLERANCE = 1e-3  # of a sum of about ten log-probabilities in float32

TASK = """
task: which_follows
dataset_path: json
dataset_kwargs: {{data_files: {{test: "{questions}"}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{context}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: "{{{{gold}}}}"
metric_list: [{{metric: acc}}]
"""


def siamese(binary: Path, folder: Path, *words: object) -> None:
    done = subprocess.run([str(binary), *map(str, words)], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"siamese {words[0]}: {done.stderr.strip().splitlines()[-1]}")


def make_model(binary: Path, folder: Path, texts: list[Path], steps: int) -> None:
    """folder/hf, and the run that it came from."""
    siamese(binary, folder, "tokenizer", "train", "tokenizer.json", *texts, "--vocab", 1024)
    siamese(binary, folder, "prepare", *texts, "--tokenizer", "tokenizer.json", "--out", "data", "--val-fraction", 0)
    siamese(
        binary, folder, "train", "text-small", "data.source=tokens", "data.train=[data/train]", "model.vocab=1024",
        "model.width=96", "model.blocks=4", "model.heads=4", "model.context=256", "optim.schedule.warmup=20",
        f"train.steps={steps}", f"train.eval_every={steps}", f"train.checkpoint_every={steps}", "eval.batches=2",
        "--quiet", "--out", "run",
    )  # fmt: skip
    checkpoint = folder / "run" / f"step{steps}"
    (checkpoint / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    names = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>", "model_max_length": 256}
    (checkpoint / "tokenizer_config.json").write_text(json.dumps(names), encoding="utf-8")
    siamese(binary, folder, "convert", checkpoint, "--from", "siamese", "--to", "hf", "-o", "hf")


def make_task(folder: Path, texts: list[Path], count: int) -> None:
    """The continuation that stands there against one from elsewhere."""
    draw = random.Random(0)
    words = [text.read_text(encoding="utf-8").split() for text in texts]
    words = [each for each in words if len(each) > 4 * (CONTEXT + CONTINUATION)]

    def passage() -> list[str]:
        text = draw.choice(words)
        first = draw.randrange(len(text) - CONTEXT - CONTINUATION)
        return text[first : first + CONTEXT + CONTINUATION]

    with (folder / "questions.jsonl").open("w", encoding="utf-8") as file:
        for _ in range(count):
            asked, other, gold = passage(), passage(), draw.randrange(2)
            choices = [" ".join(asked[CONTEXT:]), " ".join(other[CONTEXT:])]
            question = {"context": " ".join(asked[:CONTEXT]), "choices": choices[:: 1 - 2 * gold], "gold": gold}
            file.write(json.dumps(question) + "\n")
    (folder / "task.yaml").write_text(TASK.format(questions=folder / "questions.jsonl"), encoding="utf-8")


def ask_lm_eval(folder: Path) -> tuple[float, list[tuple[str, str, float]]]:
    """Accuracy, and (context, continuation, log-likelihood) of every request."""
    model = {"pretrained": str(folder / "hf"), "trust_remote_code": True, "dtype": "float32", "max_length": 256}
    found = lm_eval.simple_evaluate(
        model="hf", model_args=model, tasks=["which_follows"], device="cpu", batch_size=16, bootstrap_iters=0,
        task_manager=TaskManager(include_path=str(folder), include_defaults=False), log_samples=True,
    )  # fmt: skip
    requests = []
    for sample in found["samples"]["which_follows"]:
        for arguments, answer in zip(sample["arguments"], sample["filtered_resps"], strict=True):
            requests.append((arguments[0], arguments[1], float(answer[0])))
    return found["results"]["which_follows"]["acc,none"], requests


def sums(logits: torch.Tensor, tokens: torch.Tensor, spans: list[tuple[int, int]]) -> list[float]:
    """The log-likelihood of tokens [first, last) of each row."""
    log_shares = logits[:, :-1].double().log_softmax(-1).gather(-1, tokens[:, 1:, None])[..., 0]
    return [row[first - 1 : last - 1].sum().item() for row, (first, last) in zip(log_shares, spans, strict=True)]


def accuracy(likelihoods: list[float], golds: list[int]) -> float:
    pairs = zip(likelihoods[::2], likelihoods[1::2], golds, strict=True)
    return sum((second > first) == bool(gold) for first, second, gold in pairs) / len(golds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, default=ROOT / "build/release/siamese")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--questions", type=int, default=200)
    options = parser.parse_args()
    texts = sorted((ROOT / "docs").glob("*.md"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_model(options.binary.resolve(), folder, texts, options.steps)
        make_task(folder, texts, options.questions)
        theirs, requests = ask_lm_eval(folder)
        tokenizer = AutoTokenizer.from_pretrained(folder / "hf", trust_remote_code=True)
        rows, spans = [], []
        for context, continuation, _ in requests:
            whole = tokenizer.encode(context + continuation)
            rows.append(whole)
            spans.append((len(tokenizer.encode(context)), len(whole)))
        # Causal: what stands behind the end of a row changes nothing before it.
        tokens = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
        save_file({"tokens": tokens}, folder / "in.safetensors")
        siamese(options.binary.resolve(), folder, "probe", "run", "--inputs", "in.safetensors", "--out",
                "out.safetensors")  # fmt: skip
        engine = sums(load_file(folder / "out.safetensors")["output"], tokens, spans)
        model = AutoModelForCausalLM.from_pretrained(folder / "hf", trust_remote_code=True, dtype=torch.float32)
        with torch.no_grad():
            forward = sums(model(tokens).logits, tokens, spans)
        golds = [json.loads(line)["gold"] for line in (folder / "questions.jsonl").read_text().splitlines()]
    asked = [likelihood for _, _, likelihood in requests]
    print(f"{len(asked)} log-likelihoods of {len(golds)} questions, lm-eval's hf model: accuracy {theirs:.4f}")
    wrong = 0
    for who, found in (("siamese probe", engine), ("transformers' forward pass", forward)):
        apart = max(abs(a - b) for a, b in zip(asked, found, strict=True))
        reached = accuracy(found, golds)
        bad = not apart <= TOLERANCE or abs(reached - theirs) > 1e-9
        print(f"{who}: accuracy {reached:.4f}, largest difference {apart:.2e}{' NOT EQUAL' if bad else ''}")
        wrong += bad
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
