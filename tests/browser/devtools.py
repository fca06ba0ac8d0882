"""A browser driven through the DevTools protocol, with nothing but the standard library.

The protocol speaks JSON over a WebSocket (RFC 6455). Chromium takes it over a pair of pipes too
(--remote-debugging-pipe): messages end with a zero byte, and no port, no handshake and no network are needed.
"""

import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

BINARIES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class BrowserError(Exception):
    pass


def find_browser():
    for name in BINARIES:
        path = shutil.which(name)
        if path:
            return path
    raise BrowserError(f"no browser: expected one of {', '.join(BINARIES)} on PATH (./setup.sh installs chromium)")


class Browser:
    """One headless browser with a profile that goes away with it."""

    def __init__(self, seconds=600):  # only for machines that hang
        self.limit = time.monotonic() + seconds
        self.profile = tempfile.TemporaryDirectory(prefix="siamese_browser_")
        self.log = open(pathlib.Path(self.profile.name) / "log.txt", "wb")
        read_by_browser, self.write_end = os.pipe()
        self.read_end, written_by_browser = os.pipe()
        command = [find_browser(), "--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-default-browser-check",
                   "--disable-extensions", "--disable-dev-shm-usage", "--hide-scrollbars", "--mute-audio",
                   "--user-data-dir=" + self.profile.name]
        if os.geteuid() == 0:  # Chromium refuses its sandbox to root
            command.append("--no-sandbox")

        def pipes():  # the protocol is spoken on descriptors 3 and 4
            high = os.dup(read_by_browser), os.dup(written_by_browser)
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        preexec_fn=pipes, close_fds=False, start_new_session=True)
        os.close(read_by_browser)
        os.close(written_by_browser)
        self.buffer = b""
        self.number = 0
        self.events = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
        except BrowserError:
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
        self.log.close()
        try:
            self.profile.cleanup()
        except OSError:  # a helper of the browser is still writing its last
            shutil.rmtree(self.profile.name, ignore_errors=True)

    def said(self):
        return (pathlib.Path(self.profile.name) / "log.txt").read_text(errors="replace")[-2000:]

    def receive(self):
        """The next message."""
        while b"\0" not in self.buffer:
            left = self.limit - time.monotonic()
            ready, _, _ = select.select([self.read_end], [], [], max(0, left))
            if not ready:
                raise BrowserError("the browser does not answer; it said: " + self.said())
            piece = os.read(self.read_end, 1 << 16)
            if not piece:
                raise BrowserError("the browser ended; it said: " + self.said())
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        """Sends a command and returns its result; events that come meanwhile are kept in `events`."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        try:
            os.write(self.write_end, json.dumps(message).encode() + b"\0")
        except BrokenPipeError:
            raise BrowserError("the browser ended; it said: " + self.said()) from None
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error'].get('message')}")
                return answer.get("result", {})
            self.events.append(answer)

    def wait_for(self, method, session):
        while True:
            for at, event in enumerate(self.events):
                if event.get("method") == method and event.get("sessionId") == session:
                    return self.events.pop(at)
            self.events.append(self.receive())


class Page:
    """A tab: opened at a width, asked in JavaScript, touched with a real mouse."""

    def __init__(self, browser, width, height=900):
        self.browser = browser
        self.home = None
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def open(self, path):
        """A file, or an address of a server on this machine: then requests to it are no complaint."""
        at_home = str(path).startswith(("http://127.0.0.1:", "about:"))
        self.home = str(path) if at_home else None
        answer = self.call("Page.navigate", url=str(path) if at_home else pathlib.Path(path).resolve().as_uri())
        if "errorText" in answer:
            raise BrowserError(f"{path}: {answer['errorText']}")
        self.browser.wait_for("Page.loadEventFired", self.session)
        self.settle()

    def settle(self):
        """Two frames: what was asked for is drawn, and observers of sizes have run."""
        self.ask("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def wait(self, expression, seconds=60):
        """Until a condition holds in the page; a time that is only for machines that hang."""
        held = self.ask(f"""new Promise(done => {{ const end = Date.now() + {1000 * seconds};
          const look = () => {{ let held = false; try {{ held = Boolean({expression}); }} catch (_) {{}}
            if (held || Date.now() > end) done(held); else setTimeout(look, 30); }}; look(); }})""")
        if not held:
            raise BrowserError(f"did not come true: {expression}; the page says: {self.ask('document.body.innerText')[:2000]}")

    def key(self, name, code):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code)
        self.settle()

    def ask(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise BrowserError(f"{expression}: {details.get('exception', {}).get('description', details.get('text'))}")
        return answer["result"].get("value")

    def mouse(self, kind, x, y, buttons=0):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, buttons=buttons, clickCount=1,
                  button="left" if kind != "mouseMoved" or buttons else "none")

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, 1)
        self.mouse("mouseReleased", x, y)
        self.settle()

    def press(self, node, tries=100):
        """Clicks on what an expression finds. Where the page moved between the look and the click (an answer of a server
        came), a reader would look again, and so does this."""
        for _ in range(tries):
            box = self.ask(f"""(node => {{ node.scrollIntoView({{block: 'center'}}); window.pressed = false;
              node.addEventListener('click', () => {{ window.pressed = true; }}, {{capture: true, once: true}});
              const box = node.getBoundingClientRect(); const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
              return node.contains(document.elementFromPoint(x, y)) ? [x, y] : null; }})({node})""")
            if box:
                self.click(*box)
            else:
                self.settle()
            if self.ask("window.pressed"):
                return
        raise BrowserError(f"could not be clicked: {node}")

    def drag(self, start, end):
        self.mouse("mouseMoved", *start)
        self.mouse("mousePressed", *start, 1)
        for part in range(1, 5):
            self.mouse("mouseMoved", start[0] + (end[0] - start[0]) * part / 4, start[1] + (end[1] - start[1]) * part / 4, 1)
        self.mouse("mouseReleased", *end)
        self.settle()

    def nameless(self):
        """What somebody who cannot see the page would come upon without being told what it is."""
        tree = self.call("Accessibility.getFullAXTree")["nodes"]
        return [node for node in tree if not node.get("ignored") and not node.get("name", {}).get("value")
                and node.get("role", {}).get("value") in ("button", "slider", "combobox", "searchbox", "link", "image", "img", "region")]

    def lightness(self, what):
        """From 0, black, to 1, of a colour of the page's body."""
        return self.ask("(color => { const [r, g, b] = color.match(/[\\d.]+/g).map(Number); return (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255; })"
                        f"(getComputedStyle(document.body).{what})")

    def saved_pictures(self):
        """How many charts are drawn, and the texts of the files that their buttons save."""
        self.ask("window.saved = []; URL.createObjectURL = blob => { saved.push(blob.text()); return 'data:,'; }; HTMLAnchorElement.prototype.click = () => {}")
        charts = "[...document.querySelectorAll('.svg-button')].map(button => button.closest('.card.chart, .heat-map')).filter(one => one.querySelector('.plot svg'))"
        drawn = self.ask(f"{charts}.length")
        self.ask(f"{charts}.forEach(one => one.querySelector('.svg-button').click())")
        return drawn, self.ask("Promise.all(saved)")

    def complaints(self):
        """What a developer would see in red: exceptions, console errors, requests."""
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            name, about = event.get("method"), event.get("params", {})
            if name == "Runtime.exceptionThrown":
                details = about["exceptionDetails"]
                found.append(details.get("exception", {}).get("description", details.get("text")))
            elif name == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
                found.append(about["type"] + ": " + " ".join(str(part.get("value")) for part in about["args"]))
            elif name == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
                found.append(about["entry"]["text"])
            elif name == "Network.requestWillBeSent" and not about["request"]["url"].startswith(("file:", "data:", "blob:", *([self.home] if self.home else []))):
                found.append("a request: " + about["request"]["url"])
        return found
