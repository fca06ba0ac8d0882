"""A reader of safetensors in a few lines, so that what the engine wrote is looked at with other eyes."""

from __future__ import annotations

import json
from pathlib import Path

import torch

TYPES = {"F64": torch.float64, "F32": torch.float32, "BF16": torch.bfloat16, "I64": torch.int64}


def read(path: Path) -> dict[str, torch.Tensor]:
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, about in header.items():
        begin, end = about["data_offsets"]
        raw = bytearray(data[8 + length + begin : 8 + length + end])
        flat = torch.frombuffer(raw, dtype=TYPES[about["dtype"]]) if raw else torch.empty(0)
        tensors[name] = flat.reshape(about["shape"])
    return tensors
