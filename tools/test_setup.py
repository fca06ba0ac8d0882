#!/usr/bin/env python3
"""setup.sh on a machine made of scripts: what it hands to pip, what it says before, and when it downloads nothing."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SETUP = Path(__file__).resolve().parent.parent / "setup.sh"
VERSION = next(line.split("=")[1].strip() for line in SETUP.read_text().splitlines() if line.startswith("torch_version="))
# Speaks as python does to setup.sh: nothing is installed, and pip writes down what it is asked for.
PYTHON = """#!/bin/sh
case "$*" in
*importlib.metadata*) exit 1 ;;
"-m pip install"*)
  printf '%s\\n' "$*" >>asked
  echo "Collecting torch"
  echo "  Downloading torch-1.whl.metadata (1 kB)"
  echo "  Downloading https://wheels.example/torch-1.whl (191.8 MB)"
  ;;
esac
"""


class Setup(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        shutil.copy(SETUP, self.root)
        self.script(".venv/bin/python", PYTHON)
        for name, text in {
            "dpkg-query": 'shift 2; for p in "$@"; do printf "%s=installed " "$p"; done',
            "apt-get": "echo apt-get >>asked",
            "g++": "echo 12.2.0",
            "cmake": "echo cmake version 3.25.1",
        }.items():
            self.script(f"bin/{name}", f"#!/bin/sh\n{text}\n")

    def script(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def run_setup(self, path: str = "", **variables: str) -> subprocess.CompletedProcess:
        known = {key: value for key, value in os.environ.items() if key not in ("TORCH_INDEX", "SIAMESE_TORCH_PREFIX")}
        return subprocess.run(["bash", "./setup.sh"], cwd=self.root, capture_output=True, text=True, check=False,
                              env={**known, "PATH": path or f"{self.root}/bin:{os.environ['PATH']}", **variables})

    def asked(self) -> list[str]:
        record = self.root / "asked"
        return record.read_text().splitlines() if record.is_file() else []

    def test_the_size_is_said_before_anything_is_downloaded(self):
        run = self.run_setup()
        self.assertEqual(run.returncode, 0, run.stderr)
        lines = run.stdout.splitlines()
        told = next(i for i, line in enumerate(lines) if "0.2 GB" in line and "TORCH_INDEX" in line)
        self.assertLess(told, lines.index("setup:   downloading torch-1.whl, 191.8 MB"))
        self.assertNotIn("metadata", run.stdout)
        self.assertEqual(self.asked()[0].split()[-1], f"torch=={VERSION}")
        self.assertNotIn("--index-url", self.asked()[0])

    def test_an_index_of_ones_own_is_for_torch_alone(self):
        run = self.run_setup(TORCH_INDEX="https://wheels.example/cpu")
        self.assertEqual(run.returncode, 0, run.stderr)
        torch, numpy = self.asked()
        self.assertIn(f"--index-url https://wheels.example/cpu torch=={VERSION}", torch)
        self.assertNotIn("--index-url", numpy)

    def test_an_index_that_is_not_used_is_said(self):
        self.script(".venv/bin/python", PYTHON.replace("exit 1 ;;", f"echo {VERSION} ;;"))
        run = self.run_setup(TORCH_INDEX="https://wheels.example/cpu")
        self.assertEqual((run.returncode, self.asked()), (0, []), run.stderr)
        self.assertIn("TORCH_INDEX is not used: remove .venv", run.stdout)

    def torch_package(self, version: str) -> Path:
        prefix = self.root / "elsewhere" / "torch"
        (prefix / "lib").mkdir(parents=True)
        (prefix / "include" / "ATen").mkdir(parents=True)
        (prefix / "lib" / "libtorch_cpu.so").touch()
        (prefix / "version.py").write_text(f"__version__ = '{version}'\n")
        return prefix

    def test_a_torch_that_is_there_is_used_and_nothing_downloaded(self):
        run = self.run_setup(SIAMESE_TORCH_PREFIX=str(self.torch_package(f"{VERSION}+cpu")))
        self.assertEqual((run.returncode, self.asked()), (0, []), run.stderr)
        self.assertNotIn("tested with", run.stdout)

    def test_a_torch_of_another_version_is_said(self):
        run = self.run_setup(SIAMESE_TORCH_PREFIX=str(self.torch_package("2.1.0")))
        self.assertEqual((run.returncode, self.asked()), (0, []), run.stderr)
        self.assertIn(f"torch 2.1.0: this engine is built and tested with {VERSION}", run.stdout)

    def test_a_folder_without_torch_is_refused(self):
        (self.root / "lib").mkdir()
        run = self.run_setup(SIAMESE_TORCH_PREFIX=str(self.root))
        self.assertEqual((run.returncode, self.asked()), (1, []), run.stdout)
        self.assertIn("SIAMESE_TORCH_PREFIX: expected the folder of a torch package", run.stderr)

    def test_without_apt_it_names_the_packages_and_goes_on(self):
        for name in ("dpkg-query", "apt-get"):
            (self.root / "bin" / name).unlink()
        for name in ("bash", "sed", "sort", "head", "tee", "mkdir", "dirname", "grep", "tail"):
            (self.root / "bin" / name).symlink_to(shutil.which(name))
        run = self.run_setup(path=str(self.root / "bin"))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("no apt-get here", run.stdout)
        self.assertIn("libhwy-dev", run.stdout)
        self.assertEqual(len(self.asked()), 2)


if __name__ == "__main__":
    unittest.main()
