"""What a second stream must cost: the bytes that siamese moves between two branches and pre does not, and how long they
take at the rate of a plain streaming loop, beside what a step takes longer.

Of `rows` x `width` floats, at each of 2 blocks + 1 places (every site, and the close):
  forward    read X; written X and U                                         3 arrays
  backward   read U and the gradient of X; written the gradient of X         3 arrays
             written the gradient of the branch, where pre has one for both  1 array; in bfloat16 pre writes it, too
Branches and their inputs, which bfloat16 halves, are the same for both."""

from dataclasses import dataclass

import shapes
from record import Record

LABELS = {"siamese / pre": ("float32", 7), "siamese / pre, bfloat16": ("bfloat16", 6)}
KERNEL = "junction siamese"


@dataclass(frozen=True)
class SecondStream:
    shape: str
    precision: str
    extra_ms: float
    extra_mb: float
    stream_gb_per_s: float

    @property
    def bound_ms(self) -> float:
        return self.extra_mb / self.stream_gb_per_s

    @property
    def of_bound(self) -> float:
        return self.extra_ms / self.bound_ms


def streaming_rate(record: Record) -> float | None:
    """Of a loop with as many arrays as siamese's passes, beyond cache; the slower of forward and backward."""
    rates = [kernel["stream_gb_per_s"] for line in record.kernels if not line["in_cache"]
             for kernel in line["kernels"] if kernel["kernel"].startswith(KERNEL)]
    return min(rates) if rates else None


def second_streams(record: Record) -> list[SecondStream]:
    rate = streaming_rate(record)
    if rate is None:
        return []
    found = []
    for line in record.against:
        shape = shapes.load(line["shape"])
        if record.runs[line["shape"]] != record.runs["kernels"]:
            continue  # another day's memory
        if line["label"] not in LABELS or not isinstance(shape, shapes.Shape):
            continue
        precision, arrays = LABELS[line["label"]]
        floats = arrays * shape.batch * shape.context * shape.width * (2 * shape.blocks + 1)
        # The median of turns, not of the two medians: it is what the price is.
        extra = (line["ratio"] - 1) * line["against_ms"]
        found.append(SecondStream(line["shape"], precision, extra, floats * 4e-6, rate))
    return found
