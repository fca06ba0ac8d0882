#!/usr/bin/env python3
"""How `siamese watch` and `siamese report` do with many runs: writes them, reports and watches them, opens the pages in Chromium.

    benchmarks/watch.py build/release/siamese [--runs 200] [--steps 5000] [--seconds 30] [--only report]

Prints how long the report takes to be written and its page to be opened; how long the server takes to read all runs, how
long its page takes from the request until every run is drawn, how long a redraw takes and how often frames come while
runs go on, and what the server takes of a core when nothing changes.
"""

import argparse
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "browser"))
import devtools
import live

VARIANTS = ("pre", "post", "siamese", "hybrid", "deepnorm", "span", "keel", "mixln")
RATES = (0.001, 0.002, 0.004)


def write_runs(folder, count, steps):
    runs = []
    for at in range(count):
        variant, rate, seed = VARIANTS[at % 8], RATES[at // 8 % 3], at // 24
        run = live.WrittenRun(folder / f"{variant}-lr{rate}-seed{seed}", variant, rate, seed, 2 * steps)
        run.train(steps, lambda step, floor=0.5 + 0.1 * (at % 8): floor + 2 * 0.999**step + 0.05 * ((step * 7919 + at) % 97) / 97)
        run.evaluate(1 + 0.1 * (at % 8))
        runs.append(run)
    return runs


def processor_seconds(process):
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def browser_seconds(browser):
    """Of all its processes: what the page costs, whatever else the machine does."""
    total = 0
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.getsid(int(entry.name)) == browser.process.pid:
                total += processor_seconds(entry.name)
        except OSError:  # ended meanwhile
            pass
    return total


def measure_report(options, folder):
    """From the command to the page, and from the file to all of it drawn: opened, and a step read under the pointer."""
    file = folder.parent / "report.html"
    begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([options.binary, "report", *sorted(folder.iterdir()), "--out", file], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    core = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"report written: {time.monotonic() - begin:.1f} s, {core:.1f} s of a core; {file.stat().st_size / 2**20:.1f} MB")
    plot = "[...document.querySelectorAll('.card.chart')].find(card => card.querySelector('h3').textContent === 'Loss').querySelector('.plot')"
    with devtools.Browser() as browser:
        for _ in range(3):
            page = devtools.Page(browser, 1400)
            begin, before = time.monotonic(), browser_seconds(browser)
            page.open(file)
            lines = page.ask(f"{plot}.querySelectorAll('svg path').length")
            print(f"report opened, {lines} lines in its first chart: {time.monotonic() - begin:.2f} s, {browser_seconds(browser) - before:.2f} s of a core")
            if lines < min(options.runs, len(VARIANTS)):  # a line is the mean of a variant's seeds at one rate
                sys.exit("expected a line of each variant")
            box = page.ask(f"(() => {{ const plot = {plot}; plot.scrollIntoView({{ block: 'center' }}); const box = plot.getBoundingClientRect(); return [box.x, box.y, box.width, box.height]; }})()")
            begin, before = time.monotonic(), browser_seconds(browser)
            for at in range(10):
                page.mouse("mouseMoved", box[0] + box[2] * (0.3 + 0.04 * at), box[1] + box[3] / 2)
                page.settle()
            print(f"  under the pointer: {100 * (time.monotonic() - begin):.0f} ms a step, {100 * (browser_seconds(browser) - before):.0f} ms of a core")
            page.call("Page.navigate", url="about:blank")


def measure_watch(options, folder, runs):
    begin = time.monotonic()
    server = live.Watching(folder, binary=options.binary, interval=1)
    with devtools.Browser() as browser:
        page = devtools.Page(browser, 1400)
        page.open(server.address + "/")
        drawn = f"document.body.dataset.runs === '{options.runs}'"
        page.wait(f"{drawn} && !document.querySelector('.watch-bar').textContent.includes('reading')", 600)
        print(f"read and drawn from nothing: {time.monotonic() - begin:.1f} s; the server took {processor_seconds(server.process.pid):.1f} s of a core")
        for _ in range(3):
            page.open("about:blank")
            begin, before = time.monotonic(), browser_seconds(browser)
            page.open(server.address + "/")
            page.wait(drawn)
            page.settle()
            print(f"page opened with all {options.runs} runs drawn: {time.monotonic() - begin:.2f} s, {browser_seconds(browser) - before:.2f} s of a core; "
                  f"the last drawing {page.ask('document.body.dataset.drawMs')} ms")
        page.ask("window.frames_ = []; const beat = (now) => { frames_.push(now); requestAnimationFrame(beat); }; requestAnimationFrame(beat); 1")
        before = browser_seconds(browser)
        for _ in range(10):  # every run goes on, a step a second
            for run in runs:
                run.train(1)
            time.sleep(1)
        took = browser_seconds(browser) - before
        gaps = sorted(page.ask("frames_.slice(1).map((now, at) => now - frames_[at])"))
        print(f"while all go on: median frame {gaps[len(gaps) // 2]:.0f} ms, 99 % {gaps[int(0.99 * len(gaps))]:.0f} ms, longest {gaps[-1]:.0f} ms; the browser {10 * took:.0f} % of a core")
        page.wait("true")
        before = processor_seconds(server.process.pid)
        time.sleep(options.seconds)
        used = processor_seconds(server.process.pid) - before
        print(f"nothing changes, page open: {100 * used / options.seconds:.2f} % of a core")
        page.call("Page.navigate", url="about:blank")
    memory = [line for line in pathlib.Path(f"/proc/{server.process.pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
    print(f"memory of the server: {int(memory[0].split()[1]) / 1024:.0f} MB; exit code {server.stop()}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--only", choices=("report", "watch"))
    with tempfile.TemporaryDirectory(prefix="siamese_watch_") as made:
        chosen, folder = parser.parse_args(), pathlib.Path(made) / "runs"
        written = write_runs(folder, chosen.runs, chosen.steps)
        if chosen.only != "watch":
            measure_report(chosen, folder)
        if chosen.only != "report":
            measure_watch(chosen, folder, written)
