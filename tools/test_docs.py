#!/usr/bin/env python3
"""tools/check_docs.py can fail: each of its rules against a small tree that breaks it, with a binary made of a script."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import check_docs  # noqa: E402
from docs_commands import Binary, check_commands  # noqa: E402
from docs_pages import simple_commands  # noqa: E402

# Speaks as the binary does: two verbs, one of them with a verb of its own; two keys; `config show` judges the recipe.
BINARY = """#!/bin/sh
case "$*" in
"--help") printf 'Usage\\nSUBCOMMANDS:\\n  train       Trains\\n  config      Reads\\n' ;;
"train --help") printf 'OPTIONS:\\n  --out TEXT  where\\n' ;;
"config --help") printf 'SUBCOMMANDS:\\n  show        One\\n  keys        All\\n' ;;
"config show --help") printf 'OPTIONS:\\n  -h,--help   Help\\n' ;;
"config keys") printf 'optim.lr 1 rate\\nmodel.width 2 width\\n' ;;
"config show tiny"*) echo shown ;;
"config show"*) echo "siamese: no config '$3'" >&2; exit 2 ;;
*) echo "did $*" ;;
esac
"""


class Docs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.write("Makefile", "demo: build\nbuild:\n")
        self.write("configs/tiny.yaml", "a: 1\n")
        self.write("docs/results/x.jsonl", "")
        self.write("tools/x.py", "")
        self.write("examples/x", "")
        self.write("docs/other.md", "# Other\n\n## Keys, and `values`\n\n## Twice\n\n## Twice\n")

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def problems(self, text: str) -> list[str]:
        self.write("README.md", text)
        return check_docs.check(self.root)[1]

    def asked(self, text: str) -> list[str]:
        self.write("README.md", text)
        script = self.write("siamese.sh", BINARY)
        script.chmod(0o755)
        return check_commands(check_docs.check(self.root)[0], Binary(script, self.root))

    def assert_one(self, problems: list[str], *words: str) -> None:
        self.assertEqual(len(problems), 1, problems)
        for word in words:
            self.assertIn(word, problems[0])


class Links(Docs):
    def test_what_is_there_passes(self):
        self.assertEqual(self.problems(
            "[a](docs/other.md) [b](docs/other.md#keys-and-values) [c](docs/other.md#twice-1) [d](#here)\n\n# Here\n"
            "[e](https://example.org/x) `[f](nowhere.md)`\n\n```\n[g](nowhere.md)\n```\n"), [])

    def test_a_file_that_is_gone(self):
        self.assert_one(self.problems("one\n[a](docs/gone.md)\n"), "README.md:2", "docs/gone.md")

    def test_a_heading_that_is_gone(self):
        self.assert_one(self.problems("[a](docs/other.md#values)\n"), "docs/other.md", "no heading")
        self.assert_one(self.problems("[a](docs/other.md#twice-2)\n"), "no heading")

    def test_a_picture_and_a_link_out_of_a_folder(self):
        self.assert_one(self.problems("![a](docs/gone.svg)\n"), "docs/gone.svg")
        self.write("docs/second.md", "[up](../README.md) [gone](../GONE.md)\n")
        self.assert_one(self.problems("x\n"), "docs/second.md:1", "GONE.md")


class Names(Docs):
    def test_files_of_the_tree(self):
        self.assertEqual(self.problems("`tools/x.py` `configs/tiny` `tools/<name>.py` `runs/x` `nn/norm.h`\n"), [])
        self.assert_one(self.problems("`tools/gone.py`\n"), "tools/gone.py")
        self.assert_one(self.problems("```sh\npython3 tools/gone.py   # x\n```\n"), "README.md:2", "tools/gone.py")

    def test_targets_of_make(self):
        self.assertEqual(self.problems("`make demo`, make sense\n```sh\nmake build   # make nothing\n```\n"), [])
        self.assert_one(self.problems("`make dmeo`\n"), "make dmeo")
        self.assert_one(self.problems("```sh\nmake build dmeo\n```\n"), "make dmeo")


class Commands(Docs):
    def test_good_commands_pass(self):
        self.assertEqual(self.asked(
            "```sh\nsiamese train tiny optim.lr=1 \\\n  model.width=2 --out runs/x   # --gone\nmpirun -n 2 siamese train tiny\n"
            "siamese train mine.yaml optim.lr=2 | siamese config keys\nsiamese train ... --out x\n```\n"
            "`siamese train CONFIG` and `siamese config show tiny`\n\n    siamese train tiny\n"), [])

    def test_an_unknown_verb(self):
        self.assert_one(self.asked("```sh\nsiamese tarin tiny\n```\n"), "README.md:2", "tarin")
        self.assert_one(self.asked("`siamese config shw tiny`\n"), "shw")

    def test_an_unknown_option_also_on_a_continued_line(self):
        self.assert_one(self.asked("```sh\nsiamese train tiny \\\n  --oot x\n```\n"), "README.md:2", "--oot")
        self.assert_one(self.asked("text\n\n    mpirun -n 2 siamese train tiny --oot x\n"), "README.md:3", "--oot")

    def test_an_unknown_key(self):
        self.assert_one(self.asked("```sh\nsiamese train tiny optim.lrr=1\n```\n"), "optim.lrr")

    def test_a_config_that_the_binary_refuses(self):
        self.assert_one(self.asked("```sh\nsiamese train tyni optim.lr=1\n```\n"), "README.md:2", "no config 'tyni'")

    def test_a_marked_block_is_run(self):
        self.assertEqual(self.asked("<!-- run -->\n```sh\n# first\nsiamese train tiny\ntest -d configs\n```\n"), [])
        self.assert_one(self.asked("<!-- run -->\n```sh\nsiamese config show tiny\nfalse\n```\n"), "README.md:4", "exit 1")

    def test_a_marked_block_shows_what_is_said(self):
        good = "<!-- run -->\n```\n$ siamese train tiny\ndid train tiny\n```\n"
        self.assertEqual(self.asked(good), [])
        self.assert_one(self.asked(good.replace("did", "has done")), "the page shows", "did train tiny")

    def test_trainings_get_the_overrides_of_their_block(self):
        page = "<!-- run optim.lr=1 model.width=2 -->\n```\n$ siamese train tiny --out x\ndid train tiny --out x optim.lr=1 model.width=2\n"
        page += "$ siamese schemes\ndid schemes\n```\n\n<!-- run -->\n```\n$ siamese train tiny\ndid train tiny\n```\n"
        self.assertEqual(self.asked(page), [])

    def test_a_block_is_written_to_a_file_and_what_comes_first_is_done(self):
        page = "<!-- write mine.yaml -->\n```yaml\na: 1\nb: 2\n```\n\n<!-- first: echo c: 3 >> mine.yaml -->\n<!-- run -->\n"
        self.assertEqual(self.asked(page + "```\n$ cat mine.yaml\na: 1\nb: 2\nc: 3\n```\n"), [])
        self.assert_one(self.asked(page.replace("echo c: 3", "false") + "```\n$ cat mine.yaml\na: 1\nb: 2\n```\n"), "README.md:10", "exit 1")

    def test_an_unmarked_block_is_not_run(self):
        self.assertEqual(self.asked("```sh\nfalse\n```\n"), [])

    def test_lines_of_shell(self):
        self.assertEqual(simple_commands("a 'b c' | d=e # f"), [["a", "b c"], ["d=e"]])
        self.assertEqual(simple_commands("a 'b"), [])


if __name__ == "__main__":
    unittest.main()
