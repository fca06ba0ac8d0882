"""What the tests share. They run against the installed wheel, never the source tree."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """Runs of every family that version 0.1.0 wrote."""
    return REPOSITORY / "tests" / "fixtures" / "0.1.0"


@pytest.fixture(scope="session")
def binary() -> str:
    """The command line of the same build."""
    path = os.environ.get("SIAMESE_BINARY")
    assert path, "SIAMESE_BINARY: expected the path of the siamese binary (tools/test_python.sh sets it)"
    return path


@pytest.fixture(autouse=True)
def control_c() -> Iterator[None]:
    """Interrupts, also where a shell started us in the background: its jobs ignore SIGINT, and so would Python."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def tiny() -> dict[str, object]:
    """A run of seconds."""
    return {
        "model": {"width": 16, "blocks": 2, "heads": 2, "context": 32},
        "data": {"source": "arithmetic"},
        "train": {"steps": 6, "batch": 4, "checkpoint_every": 2},
        "eval": {"batches": 1, "problems": 4},
        "engine": {"threads": 1},
    }
