#!/usr/bin/env python3
"""Attacks the binary where it writes: nothing of the user's may be lost, and nothing wrong may be silent.

    tools/attack.py build/release/siamese                     # everything, some hours of one core
    tools/attack.py build/release/siamese --only kills,races --seed 7
    tools/attack.py build/release/siamese --short             # a sample, a few minutes: part of `make test`

  kills    SIGKILL at every call that changes a file, of every verb that writes; then the same command, or `resume`,
           must end as if nothing had happened, with nothing left over
  errors   such a call fails (EIO, ENOSPC from then on, EACCES, EMFILE, EINTR): documented exit code, one line, and the
           same end afterwards
  reads    a call that reads fails: the error says so
  limits   tmpfs with too few bytes or inodes, where mounting is allowed
  flips    flipped bits, cut and lost files, changed data: named, or without any effect
  races    two commands on one directory, the first held at a call: one wins, the other is refused
  foreign  files of others where a command might take them for its own

Calls are counted by a library that is preloaded (tools/attacks/shim.c; needs a C compiler), so a number is a moment and
comes again. Everything is drawn from the seed. Ends with a table of tried and held, after Ctrl-C too; exit 1 when
something did not hold.
Python 3.11, standard library only.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from attacks.disturb import errors, kills, reads  # noqa: E402
from attacks.flips import flips  # noqa: E402
from attacks.foreign import foreign  # noqa: E402
from attacks.lab import Lab  # noqa: E402
from attacks.limits import limits  # noqa: E402
from attacks.races import races_attack  # noqa: E402

ATTACKS = {
    "kills": kills,
    "errors": errors,
    "reads": reads,
    "limits": limits,
    "flips": flips,
    "races": races_attack,
    "foreign": foreign,
}
SHOWN = 12  # failures of an attack that are printed in full, each of another kind first


def print_failures(lab: Lab, attack: str) -> None:
    """Each way of failing once, with how often it came."""
    ways: dict[tuple[str, str], list] = {}
    for finding in lab.findings:
        if finding.attack == attack and finding.problems:
            ways.setdefault((finding.verb, finding.problems[0].split(":")[0]), []).append(finding)
    for (verb, _), same in list(ways.items())[:SHOWN]:
        more = f" (and {len(same) - 1} like it)" if len(same) > 1 else ""
        print(f"  {attack}, {verb}: {same[0].how}{more}")
        for problem in same[0].problems[:4]:
            print(f"      {problem}")
    if len(ways) > SHOWN:
        print(f"  {attack}: and {len(ways) - SHOWN} other kinds of failure")


def print_table(lab: Lab) -> None:
    tried: Counter = Counter((finding.attack, finding.verb) for finding in lab.findings)
    held: Counter = Counter((finding.attack, finding.verb) for finding in lab.findings if not finding.problems)
    width = max((len(verb) for _, verb in tried), default=4)
    print(f"\n{'attack':8}  {'verb':{width}}  tried   held")
    for attack in ATTACKS:
        for name, verb in sorted(key for key in tried if key[0] == attack):
            mark = "" if held[name, verb] == tried[name, verb] else "  <-- did not hold"
            print(f"{name:8}  {verb:{width}}  {tried[name, verb]:5}  {held[name, verb]:5}{mark}")
    print(f"{'all':8}  {'':{width}}  {sum(tried.values()):5}  {sum(held.values()):5}")
    for (attack, verb), count in sorted(lab.not_tried.items()):
        print(f"{attack}, {verb}: {count} not tried, the time was up or it was stopped")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=0, help="begin no trial after this time; 0 = no limit")
    parser.add_argument("--short", action="store_true", help="a sample of every attack")
    parser.add_argument("--only", default=",".join(ATTACKS), help="attacks, with commas")
    parser.add_argument("--verbs", default="", help="only these names of the table, with commas; 'analyze': also 'analyze, FILE'")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="trials at a time")
    arguments = parser.parse_args()
    wanted = arguments.only.split(",")
    if not arguments.binary.is_file() or not set(wanted) <= set(ATTACKS):
        parser.error(f"expected a binary and attacks among {', '.join(ATTACKS)}; got {arguments.binary}, {arguments.only}")
    folder = Path(tempfile.mkdtemp(prefix="siamese_attack_"))
    try:
        lab = Lab(arguments.binary, folder, arguments.seed, arguments.short, arguments.minutes, arguments.jobs)
        lab.verbs = [name for name in arguments.verbs.split(",") if name]
        signal.signal(signal.SIGINT, lab.stop)
        signal.signal(signal.SIGTERM, lab.stop)
        for left, name in zip(range(len(wanted), 0, -1), wanted):
            lab.share_time(left)
            start, before = time.monotonic(), len(lab.findings)
            ATTACKS[name](lab)
            failed = sum(bool(finding.problems) for finding in lab.findings[before:])
            tried = len(lab.findings) - before
            print(f"{name}: {tried} tried, {tried - failed} held, {time.monotonic() - start:.0f} s", flush=True)
            print_failures(lab, name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print_table(lab)
    for note in lab.notes:
        print(note)
    failed = [finding for finding in lab.findings if finding.problems]
    if failed:
        again = f"tools/attack.py {arguments.binary} --seed {arguments.seed}" + (" --short" if arguments.short else "")
        print(f"{len(failed)} did not hold; again with: {again} --only {','.join(sorted({f.attack for f in failed}))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
