"""What the scripts that draw plots from records have in common: where records lie, and their command line."""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


class Failure(Exception):
    """What is told in one line."""


def record_of(name: str) -> Path:
    return ROOT / f"docs/results/{name}.jsonl"


def command(about: str, plots: Mapping[str, Any], made: Callable[[str, Path], str], is_recorded: Callable[[str], bool]) -> int:
    """Writes the plots that are named on the command line, or all that are recorded, into docs/. A plot has a field `out`."""
    tool = Path(sys.argv[0]).stem
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which of {', '.join(plots)}; default: all that are recorded")
    parser.add_argument("--record", type=Path, help="of one plot: lines of a sweep")
    parser.add_argument("--out", type=Path, help="of one plot: the file")
    arguments = parser.parse_args()
    if (arguments.record or arguments.out) and len(arguments.names) != 1:
        parser.error("--record and --out are about one plot: name it")
    for name in arguments.names:
        if name not in plots:
            parser.error(f"expected {', '.join(plots)}, got {name}")
    for name in arguments.names or [name for name in plots if is_recorded(name)]:
        out = arguments.out or ROOT / "docs" / plots[name].out
        try:
            out.write_text(made(name, arguments.record or record_of(name)), encoding="utf-8")
        except (Failure, OSError) as error:
            sys.exit(f"{tool}: {error}")
        print(f"{tool}: {out}")
    return 0
