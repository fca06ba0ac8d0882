#!/usr/bin/env python3
"""lm-eval's `local-completions` model against `siamese serve`, held to `siamese eval --tasks` on the same questions:

    pip install torch==2.13.0 transformers==5.22.2 'lm-eval[api]==0.4.13'      # in an environment of its own
    python3 tools/real_data.py stories15m --out DIR                           # and: tasks
    siamese convert DIR/stories15m/stories15M.bin --to siamese -o stories15m
    python3 tools/lm_eval_serve.py stories15m DIR/tasks/arc_easy/rc_0shot DIR/tasks/piqa/rc_0shot

MODEL is what `serve` takes, with a tokenizer.json in it or as --tokenizer. For each set of OLMo's requests the questions
are written as a task of lm-eval (dataset_path: json; nothing is fetched) and as a set of requests, the server is started,
`lm_eval` is run as a user runs it, and every log-likelihood and the accuracy are compared.

lm-eval encodes the question and an answer together, OLMo's rule is to encode them apart. So an answer of the second form
is written with its leading space or without, whichever has the same ids; a question where neither has, or that is longer
than the model's context, is left out of both and counted. Exit code 1 if a log-likelihood differs by more than
--tolerance, or an accuracy at all.
"""

import argparse
import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tokenizers import Tokenizer

ROOT = Path(__file__).resolve().parents[1]
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

TASK = """
task: {task}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {questions}}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{context}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: "{{{{gold}}}}"
target_delimiter: " "
metric_list: [{{metric: acc}}]
"""


class Failure(Exception):
    """What is told in one line."""


def documents(folder: Path, limit: int) -> list[dict]:
    """The first questions of a set: context, answers without their leading space, the right one."""
    path = next((folder / name for name in ("requests.jsonl.gz", "requests.jsonl") if (folder / name).is_file()), None)
    if path is None:
        raise Failure(f"{folder}: holds no requests.jsonl or requests.jsonl.gz")
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    by_id: dict[int, dict] = {}
    for line in content.decode("utf-8").splitlines():
        request = json.loads(line)
        if request["doc_id"] >= 1_000_000:  # asked without the question
            continue
        asked = request["request"]
        document = by_id.setdefault(request["doc_id"], {"context": asked["context"], "answers": {}, "gold": request["label"]})
        if asked["context"] != document["context"] or not asked["continuation"].startswith(" "):
            raise Failure(f"{path}: document {request['doc_id']}: expected one context and answers that begin with a space")
        document["answers"][request["idx"]] = asked["continuation"][1:]
    return [by_id[number] for number in sorted(by_id)][:limit]


class Ids:
    """What a tokenizer makes of a text, without the tokens around it."""

    def __init__(self, file: Path):
        self.library = Tokenizer.from_file(str(file))
        self.library.no_truncation()
        self.library.no_padding()

    def of(self, text: str) -> list[int]:
        return self.library.encode(text, add_special_tokens=False).ids

    def begins_with_token(self) -> bool:
        return bool(self.library.encode("").ids)

    def apart(self, context: str, answer: str) -> str | None:
        """The answer so written that its ids after those of the context are those of both together."""
        together = self.of(f"{context} {answer}")
        return next((form for form in (f" {answer}", answer) if self.of(context) + self.of(form) == together), None)


def write_both(folder: Path, task: str, chosen: list[dict], ids: Ids, longest: int) -> int:
    """The questions for lm-eval and for us; how many there are."""
    sets = folder / "sets" / task
    sets.mkdir(parents=True)
    (folder / "tasks").mkdir(exist_ok=True)
    questions = folder / "tasks" / f"{task}.jsonl"
    (folder / "tasks" / f"{task}.yaml").write_text(TASK.format(task=task, questions=json.dumps(str(questions))))
    count = 0
    with questions.open("w") as theirs, (sets / "requests.jsonl").open("w") as ours:
        for document in chosen:
            context = document["context"]
            answers = [document["answers"][i] for i in range(len(document["answers"]))]
            forms = [ids.apart(context, answer) for answer in answers]
            # With the token that begins a text and the one that lm-eval lets the server make.
            fits = all(len(ids.of(f"{context} {answer}")) + 2 <= longest for answer in answers)
            if None in forms or not fits or context != context.rstrip():
                continue
            theirs.write(json.dumps({"context": context, "choices": answers, "gold": document["gold"]}) + "\n")
            for i, form in enumerate(forms):
                asked = {"context": context, "continuation": form}
                ours.write(json.dumps({"request_type": "loglikelihood", "doc_id": count, "idx": i,
                                       "label": document["gold"], "request": asked}) + "\n")  # fmt: skip
            count += 1
    return count


def run(command: list[str], environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
        raise Failure(f"{' '.join(command[:4])} ...: {lines[-1]}")
    return done.stdout


class Served:
    """A server while the block runs; its address."""

    def __init__(self, binary: Path, model: Path):
        self.command = [str(binary), "serve", str(model), "--port", "0", "--model", "checked"]

    def __enter__(self) -> str:
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        said = self.process.stdout.readline()
        if " at " not in said:
            raise Failure(f"{' '.join(self.command)}: ended with {self.process.wait()}")
        return said.split(" at ")[1].strip()

    def __exit__(self, *_) -> None:
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(timeout=60)
        if code != 0:
            raise Failure(f"siamese serve: exit code {code} after SIGINT")


def ask_lm_eval(address: str, folder: Path, tasks: list[str], options, special: bool) -> tuple[dict, dict]:
    """Accuracy and log-likelihoods [document][choice] of each task."""
    names = {"tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer").mkdir()
    (folder / "tokenizer" / "tokenizer.json").write_bytes(options.tokenizer.read_bytes())
    (folder / "tokenizer" / "tokenizer_config.json").write_text(json.dumps(names))
    model = (f"model=checked,base_url={address}/v1/completions,tokenizer={folder / 'tokenizer'},tokenizer_backend=huggingface,"
             f"num_concurrent={options.concurrent},max_length={options.context},add_bos_token={special}")  # fmt: skip
    command = [sys.executable, "-m", "lm_eval", "--model", "local-completions", "--model_args", model, "--tasks",
               ",".join(tasks), "--include_path", str(folder / "tasks"), "--batch_size", str(options.batch),
               "--log_samples", "--output_path", str(folder / "answers")]  # fmt: skip
    print("lm_eval", *command[3:], flush=True)
    run(command, os.environ | OFFLINE | {"HF_HOME": str(folder / "cache")})
    results = json.loads(next((folder / "answers").rglob("results_*.json")).read_text())["results"]
    numbers = {}
    for task in tasks:
        samples = next((folder / "answers").rglob(f"samples_{task}_*.jsonl")).read_text().splitlines()
        by_id = {sample["doc_id"]: sample for sample in map(json.loads, samples)}
        numbers[task] = [[float(answer[0]) for answer in by_id[i]["filtered_resps"]] for i in range(len(by_id))]
    return {task: results[task]["acc,none"] for task in tasks}, numbers


def ask_engine(folder: Path, tasks: list[str], options) -> tuple[dict, dict]:
    sets = [str(folder / "sets" / task) for task in tasks]
    run([str(options.binary), "eval", str(options.model), "--tasks", *sets, "--tokenizer", str(options.tokenizer), "--out",
         str(folder / "scores")])  # fmt: skip
    line = json.loads((folder / "scores" / "eval.jsonl").read_text().splitlines()[-1])
    numbers = {}
    for task in tasks:
        by_id = {}
        for record in map(json.loads, (folder / "scores" / f"{task}.jsonl").read_text().splitlines()[1:]):
            by_id |= dict(zip(record["documents"], record["numbers"], strict=True)) if record["part"] == "choices" else {}
        numbers[task] = [by_id[i] for i in range(len(by_id))]
    return {record["name"]: record["metrics"]["acc"] for record in line["tasks"]}, numbers


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, metavar="MODEL", help="a run directory, a checkpoint or a converted folder")
    parser.add_argument("sets", type=Path, nargs="+", metavar="SET", help="folders of OLMo's requests")
    parser.add_argument("--binary", type=Path, default=ROOT / "build/release/siamese")
    parser.add_argument("--tokenizer", type=Path, help="a tokenizer.json; else the model's own")
    parser.add_argument("--context", type=int, default=256, help="of the model (model.context)")
    parser.add_argument("--limit", type=int, default=200, help="questions of each set")
    parser.add_argument("--concurrent", type=int, default=4, help="requests at a time")
    parser.add_argument("--batch", type=int, default=8, help="prompts of a request")
    parser.add_argument("--tolerance", type=float, default=1e-3, help="of a sum of float32 log-probabilities")
    options = parser.parse_args()
    options.tokenizer = options.tokenizer or options.model / "tokenizer.json"
    ids = Ids(options.tokenizer)
    try:
        with tempfile.TemporaryDirectory() as name:
            folder, tasks = Path(name), []
            for path in options.sets:
                tasks.append("_".join(path.resolve().parts[-2:]))
                chosen = documents(path, options.limit)
                count = write_both(folder, tasks[-1], chosen, ids, options.context)
                print(f"{tasks[-1]}: {count} questions, {len(chosen) - count} left out", flush=True)
            with Served(options.binary, options.model) as address:
                their_accuracy, theirs = ask_lm_eval(address, folder, tasks, options, ids.begins_with_token())
            our_accuracy, ours = ask_engine(folder, tasks, options)
    except Failure as failure:
        print(f"lm_eval_serve: {failure}", file=sys.stderr)
        return 1
    wrong = 0
    for task in tasks:
        pairs = [pair for a, b in zip(theirs[task], ours[task], strict=True) for pair in zip(a, b, strict=True)]
        apart = max(abs(a - b) for a, b in pairs)
        bad = not apart <= options.tolerance or abs(their_accuracy[task] - our_accuracy[task]) > 1e-9
        print(f"{task}: accuracy {their_accuracy[task]:.4f} by lm-eval, {our_accuracy[task]:.4f} by siamese eval; "
              f"{len(pairs)} log-likelihoods within {apart:.1e}{' NOT EQUAL' if bad else ''}")  # fmt: skip
        wrong += bad
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
