#!/usr/bin/env python3
"""Trains a language model of any residual scheme on many devices, by PyTorch's own engine: DDP or FSDP2.

    torchrun --nproc-per-node 2 examples/python/train_fsdp.py --text book.txt --out run --parallel fsdp --bf16

Every process computes its share of each batch. A batch is a function of seed and step alone, so the number of
processes changes nothing but rounding, and `--resume` goes on with any number of them, under DDP or FSDP. At the end
the weights are exported as a checkpoint of the engine: `siamese eval run/export data.source=text data.train=book.txt`.

What makes a scheme with several streams fit: a block takes all streams as arguments and returns all of them. What
wraps blocks (FSDP's gathering of weights before, and of gradients after; torch.compile; checkpointing) then sees every
tensor that goes in and out.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

import siamesenorm as sn
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed.checkpoint import state_dict as states
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

VOCAB = 256  # a token is a byte


class Attention(nn.Module):
    """Causal, with rotary positions; the engine's names and order of rows (q, k, v)."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))


def rotate(x: Tensor) -> Tensor:
    size = x.shape[-1]
    exponents = torch.arange(0, size, 2, dtype=torch.float64, device=x.device) / size
    angles = torch.outer(torch.arange(x.shape[-2], dtype=torch.float64, device=x.device), 10000.0**-exponents)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class FeedForward(nn.Module):
    """SwiGLU. `in` is a word of Python: it is registered by its text."""

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.add_module("in", nn.Linear(width, 2 * hidden, bias=False))
        self.out = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        up, gate = getattr(self, "in")(x).chunk(2, -1)
        return self.out(F.silu(gate) * up)


class Block(nn.Module):
    """Streams in, streams out."""

    def __init__(self, stack: sn.ResidualStack, number: int, width: int, heads: int):
        super().__init__()
        self.attention_junction = stack[2 * number]
        self.attention = Attention(width, heads)
        self.ffn_junction = stack[2 * number + 1]
        self.ffn = FeedForward(width, 4 * width)
        sn.init_(stack, 2 * number, inputs=[self.attention.qkv], output=self.attention.out)
        sn.init_(stack, 2 * number + 1, inputs=[getattr(self.ffn, "in")], output=self.ffn.out)

    def forward(self, *streams: Tensor) -> tuple[Tensor, ...]:
        streams = self.attention_junction(streams, self.attention)
        return self.ffn_junction(streams, self.ffn)


class LanguageModel(nn.Module):
    def __init__(self, scheme: str, width: int, blocks: int, heads: int):
        super().__init__()
        stack = sn.ResidualStack(scheme, width=width, blocks=blocks)
        self.embedding = nn.Embedding(VOCAB, width)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.open = stack.open
        self.blocks = nn.ModuleList(Block(stack, number, width, heads) for number in range(blocks))
        self.close = stack.close

    def forward(self, tokens: Tensor) -> Tensor:
        """tokens [batch, n + 1] -> mean cross-entropy of each next one."""
        streams = self.open(self.embedding(tokens[:, :-1]))
        for block in self.blocks:
            streams = block(*streams)
        logits = F.linear(self.close(streams), self.embedding.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())


def batch_of(text: Tensor, step: int, options: argparse.Namespace) -> Tensor:
    """The whole batch of a step: a function of the seed and the step."""
    generator = torch.Generator().manual_seed(options.seed * 1_000_003 + step)
    starts = torch.randint(len(text) - options.context, (options.batch,), generator=generator)
    return torch.stack([text[start : start + options.context + 1] for start in starts.tolist()]).long()


def parallel(model: LanguageModel, options: argparse.Namespace, device: torch.device) -> nn.Module:
    """The model as this process sees it."""
    if options.compile:
        for block in model.blocks:
            block.compile(backend=options.compile)
    if options.parallel == "ddp":
        return DistributedDataParallel(model)
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def engine_config(options: argparse.Namespace) -> dict:
    """The same model as the engine writes it."""
    model = {"family": "lm", "residual": options.scheme, "width": options.width, "blocks": options.blocks}
    model |= {"heads": options.heads, "vocab": VOCAB, "context": options.context, "tied": True}
    return {"model": model, "data": {"source": "random"}}


def export(model: nn.Module, options: argparse.Namespace) -> None:
    """A checkpoint of the engine, written by the first process; all of them give their parts."""
    gathered = states.StateDictOptions(full_state_dict=True, cpu_offload=True)
    whole = states.get_model_state_dict(model, options=gathered)
    if dist.get_rank() == 0:
        ours = sn.Model(engine_config(options))
        ours.load_state_dict(whole)  # by name, all of them
        sn.save(ours, options.out / "export", overwrite=True)


def train(options: argparse.Namespace) -> None:
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    rank, processes = dist.get_rank(), dist.get_world_size()
    if options.batch % processes != 0:
        raise SystemExit(f"--batch: expected a multiple of the {processes} processes, got {options.batch}")
    share = slice(rank * options.batch // processes, (rank + 1) * options.batch // processes)
    text = torch.frombuffer(bytearray(options.text.read_bytes()), dtype=torch.uint8)

    torch.manual_seed(options.seed)
    whole = LanguageModel(options.scheme, options.width, options.blocks, options.heads).to(device)
    model = parallel(whole, options, device)
    optimizer = torch.optim.AdamW(sn.param_groups(model, weight_decay=0.1), lr=options.lr)
    first = 0
    if options.resume:
        weights, moments = states.get_state_dict(model, optimizer)
        state = {"model": weights, "optimizer": moments, "step": torch.tensor(0)}
        dcp.load(state, checkpoint_id=options.resume)
        states.set_state_dict(
            model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
        )
        first = int(state["step"])

    for step in range(first, options.steps):
        tokens = batch_of(text, step, options)[share].to(device)
        with torch.autocast(device.type, torch.bfloat16, enabled=options.bf16):
            loss = model(tokens)
        loss.backward()  # DDP and FSDP take the mean of all processes' gradients
        optimizer.step()
        optimizer.zero_grad()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        if rank == 0:
            record = {"step": step + 1, "loss": mean.item() / processes, "processes": processes}
            with open(options.out / "losses.jsonl", "a") as file:
                print(json.dumps(record), file=file)
            print(f"step {step + 1}  loss {record['loss']:.6f}", flush=True)
        if (step + 1) % options.save_every == 0:
            weights, moments = states.get_state_dict(model, optimizer)
            state = {"model": weights, "optimizer": moments, "step": torch.tensor(step + 1)}
            dcp.save(state, checkpoint_id=options.out / f"step{step + 1}")
    export(model, options)
    dist.destroy_process_group()


def leave() -> None:
    """Ends the process without the interpreter's own end: FSDP's caches keep the process group, hence Gloo's threads,
    and one that lets go of its last tensor while the interpreter ends aborts the process ("terminate called without
    an active exception"), all the more on a busy machine."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--text", type=Path, required=True, help="a file; its bytes are the tokens")
    parser.add_argument("--out", type=Path, required=True, help="folder for losses.jsonl, checkpoints, export/")
    parser.add_argument("--parallel", choices=("ddp", "fsdp"), default="fsdp")
    parser.add_argument("--bf16", action="store_true", help="products in bfloat16; weights and streams stay float32")
    parser.add_argument("--compile", metavar="BACKEND", help="compile each block: inductor, aot_eager, ...")
    parser.add_argument("--resume", type=Path, help="a step folder, of any number of processes")
    parser.add_argument("--scheme", default="siamese")
    for name, default in {"width": 256, "blocks": 6, "heads": 4, "context": 256, "batch": 16}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    train(options)
    leave()


if __name__ == "__main__":
    main()
