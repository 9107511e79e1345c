"""A real browser, spoken to over the pipe that Chromium keeps for debuggers.

The words are those of the Chrome DevTools Protocol: JSON objects, each ended by a NUL.
"""

import asyncio
import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import anyio

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
OTHER_SITE = "blog.example"
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-quic", "--disable-breakpad", "--hide-scrollbars", "--site-per-process"),
    "--remote-debugging-pipe",
    # What is not on this machine is nowhere.
    f"--host-resolver-rules=MAP {OTHER_SITE} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
# Chromium reads its debugger on descriptor 3 and answers on 4; both are one socket here.
LAUNCH = (
    "import os, sys\n"
    "for number in (3, 4): os.dup2(int(sys.argv[1]), number)\n"
    "os.execv(sys.argv[2], sys.argv[2:])"
)
LONGEST_ANSWER = 64 * 1024 * 1024
HEARD = ("Page.enable", "Runtime.enable", "Log.enable", "Network.enable")


def find_chromium() -> str | None:
    """Name a Chromium of this machine that starts, or None; some packages only hold a signpost."""
    for path in filter(None, map(shutil.which, NAMES)):
        with suppress(subprocess.TimeoutExpired):
            reported = subprocess.run(
                [path, "--version"], capture_output=True, timeout=30, check=False
            )
            if reported.returncode == 0:
                return path
    return None


@dataclass
class Page:
    """A tab with a cache and cookies of its own, and what went on in it and in its frames."""

    browser: "Browser"
    session: str
    frames: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    loaded: asyncio.Event = field(default_factory=asyncio.Event)

    async def open(self, url: str, width: int = 1000, height: int = 700) -> None:
        """Show an address, with every frame and picture in it."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2,
            mobile=False,
        )
        self.loaded.clear()
        went = await self.call("Page.navigate", url=url)
        assert "errorText" not in went, went
        with anyio.fail_after(60):
            await self.loaded.wait()

    async def call(self, method: str, frame: int | None = None, **given: Any) -> dict[str, Any]:
        session = self.session if frame is None else self.frames[frame]
        return await self.browser.call(method, session, **given)

    async def read(self, expression: str, frame: int | None = None) -> Any:
        """Say what an expression comes to in the page, or in a frame of another site in it."""
        answer = await self.call(
            "Runtime.evaluate",
            frame,
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def wait_for(self, selector: str) -> None:
        """Wait until the page's scripts have drawn something."""
        wanted = f"document.querySelector({json.dumps(selector)})"
        with anyio.fail_after(60):
            await self.read(
                "new Promise(resolve => {"
                f"const look = () => {wanted} && resolve(); "
                "new MutationObserver(look).observe(document, {attributes: true, childList: true, subtree: true}); "
                "look()}).then(() => true)"
            )

    async def write(self, selector: str, text: str) -> None:
        """Put a text into a field, as from a keyboard."""
        await self.read(f"{_element(selector)}.select()")
        await self.call("Input.insertText", text=text)

    async def choose(self, selector: str) -> None:
        """Click on something that leads nowhere else."""
        await self.read(f"{_element(selector)}.scrollIntoView({{block: 'center'}})")
        box = await self.read(
            f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])"
            f"({_element(selector)}.getBoundingClientRect())"
        )
        for type_ in ("mousePressed", "mouseReleased"):
            await self.call(
                "Input.dispatchMouseEvent",
                type=type_,
                x=box[0],
                y=box[1],
                button="left",
                clickCount=1,
            )

    async def click(self, selector: str) -> None:
        """Click on a link or button, and see what it leads to."""
        self.loaded.clear()
        await self.choose(selector)
        with anyio.fail_after(60):
            await self.loaded.wait()

    async def address(self) -> str:
        """Say which page is shown: its address without the host."""
        shown: str = await self.read("location.pathname + location.search")
        return shown

    async def text(self, selector: str = "body") -> str:
        """Say what people read there."""
        found: str = await self.read(f"{_element(selector)}.innerText")
        return found

    async def photograph(self, path: Path, *, whole: bool = False) -> None:
        taken = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(taken["data"]))

    def hear(self, method: str, reported: dict[str, Any], session: str) -> None:
        """Note an event."""
        match method:
            case "Page.loadEventFired" if session == self.session:
                self.loaded.set()
            case "Target.attachedToTarget":
                self.frames.append(reported["sessionId"])
                self.browser.adopt(self, reported["sessionId"])
            case "Network.requestWillBeSent":
                self.requests.append(reported["request"]["url"])
            case "Network.loadingFailed":
                self.problems.append(
                    f"failed: {reported.get('blockedReason') or reported['errorText']}"
                )
            case "Log.entryAdded" if reported["entry"]["level"] in {"warning", "error"}:
                entry = reported["entry"]
                self.problems.append(f"{entry['source']}: {entry['text']} {entry.get('url', '')}")
            case "Runtime.consoleAPICalled" if reported["type"] in {"warning", "error", "assert"}:
                self.problems.append(f"console: {reported['args']}")
            case "Runtime.exceptionThrown":
                self.problems.append(f"exception: {reported['exceptionDetails']}")
            case "Page.javascriptDialogOpening":
                self.problems.append(f"dialog: {reported['message']}")
                self.browser.send("Page.handleJavaScriptDialog", session, accept=True)


def _element(selector: str) -> str:
    return f"document.querySelector({json.dumps(selector)})"


class Browser:
    """A Chromium that runs, and its tabs."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = count(1)
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._pages: dict[str, Page] = {}

    def send(self, method: str, session: str | None = None, **given: Any) -> int:
        """Say something whose answer nobody waits for."""
        said: dict[str, Any] = {"id": next(self._numbers), "method": method, "params": given}
        if session is not None:
            said["sessionId"] = session
        self._writer.write(json.dumps(said).encode() + b"\0")
        number: int = said["id"]
        return number

    async def call(self, method: str, session: str | None = None, **given: Any) -> dict[str, Any]:
        answered = asyncio.get_running_loop().create_future()
        self._asked[self.send(method, session, **given)] = answered
        with anyio.fail_after(60):
            answer: dict[str, Any] = await answered
        assert "error" not in answer, (method, answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    async def listen(self) -> None:
        """Hear the browser until it ends."""
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                reported = json.loads((await self._reader.readuntil(b"\0"))[:-1])
                if "id" in reported:
                    answered = self._asked.pop(reported["id"], None)
                    if answered is not None and not answered.done():
                        answered.set_result(reported)
                elif (session := reported.get("sessionId")) in self._pages:
                    self._pages[session].hear(reported["method"], reported["params"], session)
        for answered in self._asked.values():
            answered.cancel("Chromium ended")

    def adopt(self, page: Page, session: str) -> None:
        """Hear all of a tab or frame from its first moment, and of the frames it will have."""
        self._pages[session] = page
        for method in HEARD:
            self.send(method, session)
        self.send(
            "Target.setAutoAttach",
            session,
            autoAttach=True,
            waitForDebuggerOnStart=True,
            flatten=True,
        )
        self.send("Runtime.runIfWaitingForDebugger", session)

    @asynccontextmanager
    async def page(self) -> AsyncIterator[Page]:
        """Open a tab that shares nothing with another."""
        context = (await self.call("Target.createBrowserContext"))["browserContextId"]
        target = await self.call("Target.createTarget", url="about:blank", browserContextId=context)
        attached = await self.call(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )
        page = Page(self, attached["sessionId"])
        self.adopt(page, page.session)
        yield page
        await self.call("Target.disposeBrowserContext", browserContextId=context)


@asynccontextmanager
async def launched(path: str, profile: Path) -> AsyncIterator[Browser]:
    """Run a browser with a profile of its own."""
    ours, theirs = socket.socketpair()
    number = theirs.fileno()
    command = [sys.executable, "-c", LAUNCH, str(number), path, *FLAGS]
    with theirs:
        process = await asyncio.create_subprocess_exec(
            *command,
            f"--user-data-dir={profile}",
            pass_fds=[number],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    reader, writer = await asyncio.open_unix_connection(sock=ours, limit=LONGEST_ANSWER)
    browser = Browser(reader, writer)
    listening = asyncio.create_task(browser.listen())
    try:
        yield browser
        with anyio.move_on_after(5):
            browser.send("Browser.close")
            await process.wait()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its own session: the browser and its children
        await process.wait()
        await listening
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
