"""The official Inspector at its command line, as people run it in a terminal."""

import asyncio
import json
import os
import pty
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio

from tests.journeys.conftest import free_port
from tests.mcp.conformance import suite
from tests.mcp.real.served_stores import Keeper

LAUNCHER: Final = (
    suite.HOME / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
)
ASKED: Final = re.compile(r"https?://[^\s\x07\x1b]+/oauth/authorize\?[^\s\x07\x1b]+")
AUTH_REQUIRED: Final = 3
"""What it ends with when it needs a person and is told not to ask one."""
LONGEST: Final = 60.0


@dataclass
class Ran:
    """How it ended."""

    status: int
    said: str
    complained: str = ""

    @property
    def result(self) -> Any:
        """Read what it printed."""
        return json.loads(self.said)["result"]


@dataclass
class Inspector:
    """An Inspector with a home of its own, in which it keeps who let it in."""

    home: Path

    @property
    def _environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "MCP_INSPECTOR_SECRET_STORE": "file",
            "BROWSER": "true",
        }

    def _command(self, address: str, era: str, *arguments: str) -> list[str]:
        where = ("--server-url", address, "--transport", "http", "--protocol-era", era)
        return [str(suite.NODE), str(LAUNCHER), "--cli", *where, *arguments, "--format", "json"]

    async def run(self, address: str, era: str, *arguments: str) -> Ran:
        """Run it where nobody can be asked."""
        command = self._command(address, era, *arguments, "-q")
        with anyio.fail_after(LONGEST):
            ended = await anyio.run_process(
                command, check=False, env=self._environment, stdin=subprocess.DEVNULL
            )
        return Ran(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    async def run_beside(self, keeper: Keeper, address: str, era: str, *arguments: str) -> Ran:
        """Run it in a terminal, beside someone with a browser who allows what it asks for."""
        callback = f"http://127.0.0.1:{free_port()}/oauth/callback"
        command = self._command(address, era, *arguments, "--callback-url", callback)
        terminal, theirs = pty.openpty()
        process = await asyncio.create_subprocess_exec(
            *command, stdin=theirs, stdout=theirs, stderr=theirs, env=self._environment
        )
        os.close(theirs)
        answered = asyncio.Queue[str]()
        loop = asyncio.get_running_loop()
        loop.add_reader(terminal, _hear, terminal, answered)
        said, asked = "", False
        try:
            with anyio.fail_after(LONGEST):
                while part := await answered.get():
                    said += part
                    found = ASKED.search(said)
                    if found and not asked and said[found.end() :]:
                        asked = True
                        await keeper.visit(found[0])
                await process.wait()
        finally:
            loop.remove_reader(terminal)
            os.close(terminal)
            if process.returncode is None:
                process.kill()
                await process.wait()
        return Ran(process.returncode or 0, said)


def _hear(terminal: int, answered: "asyncio.Queue[str]") -> None:
    try:
        answered.put_nowait(os.read(terminal, 65_536).decode(errors="replace"))
    except OSError:  # how a terminal ends when nobody writes to it any more
        answered.put_nowait("")
