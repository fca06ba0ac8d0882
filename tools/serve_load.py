#!/usr/bin/env python3
"""Asks a server of `siamese serve` many times from many clients, and says what came of it:

    python3 tools/serve_load.py build/release/siamese RUN [--clients 64] [--requests 10000]

Starts the server itself, on a free port. Every request is one of a few questions whose answer was asked for once alone:
another answer is an error, as is any status but 200. Every tenth is a stream, every hundredth hangs up in the middle of one.
Prints requests a second, latencies, errors, and the server's memory before, at half and after. Exit code 1 with an error.
"""

import argparse
import http.client
import json
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter

QUESTIONS = 16


def body(i: int, prompts: list[str], stream: bool) -> str:
    question = i % QUESTIONS
    return json.dumps(
        {
            "prompt": prompts[question % len(prompts)],
            "max_tokens": 1 + 3 * (question % 6),
            "temperature": question % 2,
            "seed": question,
            "n": 1 + question % 3 // 2,
            "stream": stream,
        }
    )


def text_of(status: int, content: bytes, stream: bool) -> list[str]:
    if status != 200:
        raise RuntimeError(f"status {status}: {content[:200]!r}")
    if not stream:
        return [choice["text"] for choice in json.loads(content)["choices"]]
    events = [line[6:] for line in content.decode().split("\n\n") if line]
    if events[-1] != "[DONE]":
        raise RuntimeError(f"a stream without its end: {events[-1][:200]}")
    texts: dict[int, str] = {}
    for event in events[:-1]:
        for choice in json.loads(event)["choices"]:
            texts[choice["index"]] = texts.get(choice["index"], "") + choice["text"]
    return [texts[index] for index in sorted(texts)]


def ask(connection: http.client.HTTPConnection, content: str, stream: bool) -> list[str]:
    connection.request("POST", "/v1/completions", content, {"Content-Type": "application/json"})
    response = connection.getresponse()
    return text_of(response.status, response.read(), stream)


def hang_up(port: int, content: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request("POST", "/v1/completions", content, {"Content-Type": "application/json"})
    connection.getresponse().read(1)
    connection.close()


class Load:
    def __init__(self, port: int, requests: int, prompts: list[str]):
        self.port, self.requests, self.prompts = port, requests, prompts
        self.next, self.lock = 0, threading.Lock()
        self.seconds: list[float] = []
        self.errors: Counter[str] = Counter()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        self.answers = [ask(connection, body(i, prompts, False), False) for i in range(QUESTIONS)]

    def take(self) -> int | None:
        with self.lock:
            if self.next >= self.requests:
                return None
            self.next += 1
            return self.next - 1

    def client(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        while (i := self.take()) is not None:
            begin, error = time.monotonic(), ""
            try:
                if i % 100 == 99:
                    connection.close()  # the server would end it while it is idle
                    hang_up(self.port, body(i, self.prompts, True))
                elif ask(connection, body(i, self.prompts, i % 10 == 0), i % 10 == 0) != self.answers[i % QUESTIONS]:
                    error = "another answer than alone"
            except Exception as failure:  # whatever it is, it is counted
                error = f"{type(failure).__name__}: {failure}"
                connection.close()
            with self.lock:
                self.seconds.append(time.monotonic() - begin)
                if error:
                    self.errors[error] += 1


def resident_mb(process: int) -> float:
    with open(f"/proc/{process}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    return 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("run")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--requests", type=int, default=10000)
    parser.add_argument("--prompt", action="append", help="a text that the model knows; repeat")
    arguments = parser.parse_args()
    command = [arguments.binary, "serve", arguments.run, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        line = server.stdout.readline()
        if not line.startswith("serving "):
            print(f"serve_load: the server did not begin: {line}", file=sys.stderr)
            return 1
        try:
            load = Load(int(line.rsplit(":", 1)[1]), arguments.requests, arguments.prompt or ["Once", "The cat", "a", "Hello there"])
        except RuntimeError as failure:  # the model may not know these characters
            server.terminate()
            print(f"serve_load: a prompt was refused (--prompt TEXT): {failure}", file=sys.stderr)
            return 1
        memory = [resident_mb(server.pid)]
        begin = time.monotonic()
        clients = [threading.Thread(target=load.client) for _ in range(arguments.clients)]
        for client in clients:
            client.start()
        while load.next < arguments.requests // 2:
            time.sleep(0.05)
        memory.append(resident_mb(server.pid))
        for client in clients:
            client.join()
        seconds = time.monotonic() - begin
        memory.append(resident_mb(server.pid))
        server.send_signal(signal.SIGTERM)
        code = server.wait(timeout=60)
    ordered = sorted(load.seconds)
    print(f"{arguments.requests} requests by {arguments.clients} clients in {seconds:.1f} s: {arguments.requests / seconds:.0f}/s")
    print(f"latency: median {statistics.median(ordered):.3f} s, 99 % {ordered[int(0.99 * len(ordered))]:.3f} s, worst {ordered[-1]:.3f} s")
    print(f"memory: {memory[0]:.1f} MB before, {memory[1]:.1f} MB at half, {memory[2]:.1f} MB after")
    print(f"errors: {sum(load.errors.values())}; the server ended with {code}")
    for error, count in load.errors.most_common(5):
        print(f"  {count} x {error}")
    return 1 if load.errors or code != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
