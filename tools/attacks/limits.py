"""A disk that fills up: tmpfs with a limit of bytes or of inodes, for who may mount one."""

import shutil
import subprocess
from pathlib import Path

from .lab import Lab, bad_manners
from .verbs import plant, stages, verbs

PAGE = 4096


def mount(folder: Path, options: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    return shutil.which("mount") is not None and subprocess.run(command, capture_output=True, check=False).returncode == 0


def unmount(folder: Path) -> None:
    subprocess.run(["umount", str(folder)], capture_output=True, check=False)


def used(folder: Path) -> tuple[int, int]:
    """Pages and inodes of what stands in a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sum(-(-path.stat().st_size // PAGE) for path in files), 1 + sum(1 for _ in folder.rglob("*"))


def limits(lab: Lab) -> None:
    test = lab.new_folder()
    if not mount(test, "size=1m"):
        lab.notes.append("limits: skipped, mounting a tmpfs is not allowed here")
        return
    unmount(test)
    trials = []
    for stage in stages(lab, lab.sample(verbs(lab), 4, "limits")):
        verb = stage.verb
        start = lab.new_folder() / "home"
        shutil.copytree(stage.template, start)
        plant(start, verb.inside)
        pages, inodes = used(start)
        # Twice the largest file of ours would be plenty; most limits are to be met in the middle.
        cases = [f"size={(pages + more) * PAGE}" for more in (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32)]
        cases += [f"size=64m,nr_inodes={inodes + more}" for more in (1, 2, 3, 4, 5, 6, 7, 8, 10, 12)]
        for options in lab.sample(cases, 1, "limits", verb.name):

            def trial(folder: Path, stage=stage, options=options) -> list[str]:
                disk = folder / "disk"
                disk.mkdir()
                if not mount(disk, "size=64m"):
                    return ["the tmpfs could not be mounted"]
                try:
                    home = stage.set_up(disk)
                    subprocess.run(["mount", "-o", f"remount,{options}", str(disk)], check=True)
                    problems = bad_manners(lab.run(home, stage.verb.command))
                    subprocess.run(["mount", "-o", "remount,size=64m,nr_inodes=10000", str(disk)], check=True)
                    return problems + stage.come_to_the_end(home)
                finally:
                    unmount(disk)

            trials.append(("limits", verb.name, f"tmpfs with {options}", trial))
    lab.attack(trials)
