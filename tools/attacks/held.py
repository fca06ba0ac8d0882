"""A process that is held before one of its calls, so that something else happens meanwhile."""

import os
import select
from pathlib import Path

from .lab import Lab


class Held:
    """A process that the shim holds before its n-th call."""

    def __init__(self, lab: Lab, home: Path, command: list[str], number: int):
        fifo = home.parent / "fifo"
        for end in (".here", ".go"):
            os.mkfifo(f"{fifo}{end}")
        here = os.open(f"{fifo}.here", os.O_RDONLY | os.O_NONBLOCK)
        self.go = f"{fifo}.go"
        self.process = lab.start(home, command, at=str(number), do="hold", fifo=str(fifo))
        waiting = select.poll()
        waiting.register(here, select.POLLIN | select.POLLHUP)
        self.reached = False
        while not self.reached and self.process.poll() is None:
            self.reached = bool(waiting.poll(20))
        os.close(here)

    def release(self) -> None:
        while self.process.poll() is None:
            try:
                os.close(os.open(self.go, os.O_WRONLY | os.O_NONBLOCK))
                return
            except OSError:  # it has not opened its end yet
                select.poll().poll(1)
