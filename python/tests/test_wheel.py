"""What a wheel holds, and where it looks for libraries."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import files, version
from pathlib import Path

import siamesenorm as sn

FOLDER = Path(sn.__file__).resolve().parent


def dynamic(library: Path) -> str:
    return subprocess.run(["readelf", "-d", str(library)], check=True, capture_output=True, text=True).stdout


def test_it_is_the_installed_one():
    assert "site-packages" in FOLDER.parts
    assert version("siamesenorm") == sn.__version__


def test_bundles_what_a_machine_may_lack_and_nothing_else():
    libraries = {path.name for path in FOLDER.glob("*.so*")}
    assert "libsiamese_ops.so" in libraries and any(name.startswith("_binding") for name in libraries)
    for name in libraries:
        assert not re.match(r"lib(torch|c10|c|m|gomp|stdc\+\+|gcc_s|tcmalloc|mpi|python)\b", name), name
    assert (FOLDER / "configs" / "arithmetic-small.yaml").is_file() and (FOLDER / "py.typed").is_file()
    needed = {name for path in FOLDER.glob("*.so*") for name in re.findall(r"NEEDED.*\[(.*)\]", dynamic(path))}
    system = re.compile(r"(lib(torch|c10|gomp).*|(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|z)|ld-linux.*)\.so.*)")
    assert {name for name in needed - libraries if not system.fullmatch(name)} == set()
    assert {str(file) for file in files("siamesenorm") or [] if file.name == "libsiamese_ops.so"}


def test_finds_torch_beside_itself():
    for path in [FOLDER / "libsiamese_ops.so", *FOLDER.glob("_binding*.so")]:
        assert re.findall(r"R(?:UN)?PATH.*\[(.*)\]", dynamic(path)) == ["$ORIGIN:$ORIGIN/../torch/lib"], path


def test_import_from_anywhere_is_silent():
    code = "import siamesenorm, torch, sys; print(torch.ops.siamese.rms_norm); print(siamesenorm.schemes()['pre'])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert "siamese.rms_norm" in ended.stdout and ended.stderr == ""
