"""A safetensors file as a dictionary of tensors, and back: eight bytes of length, a JSON header, the data."""

import json
import struct
from pathlib import Path

import torch
from torch import Tensor

DTYPES = {"F64": torch.float64, "F32": torch.float32, "I64": torch.int64, "I32": torch.int32, "U8": torch.uint8}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def read(path: Path) -> dict[str, Tensor]:
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        if entry["dtype"] not in DTYPES:
            raise ValueError(f"{path}: {name}: unknown dtype {entry['dtype']}")
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        dtype = DTYPES[entry["dtype"]]
        tensors[name] = torch.frombuffer(bytearray(data[begin:end]), dtype=dtype).reshape(entry["shape"])
    return tensors


def write(path: Path, tensors: dict[str, Tensor]) -> None:
    header, blobs, offset = {}, [], 0
    for name, tensor in sorted(tensors.items()):
        blob = tensor.detach().contiguous().numpy().tobytes()
        span = [offset, offset + len(blob)]
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": span}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))
