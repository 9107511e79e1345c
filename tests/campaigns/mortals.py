"""Processes that die at a turn of their loop, and those that follow them, as a test asks for them."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import orjson
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

from tolsey.runtime.codec import encode
from tolsey.runtime.messages import Message

MOST = 600
"""More turns than a loop takes from the request to the end, on a busy machine too."""
STEP = 1 if os.environ.get("CAMPAIGN_SECONDS") else 8
"""`make campaign` kills at every turn, `make test-slow` at some."""
IN_A_ROW = 3
"""So many processes that outlive their last turn say that it was the last: their numbers differ a little."""


@dataclass
class Mortals:
    """Forks the processes that die."""

    forks: Process
    said: Path
    answers: TextReceiveStream = field(init=False)

    def __post_init__(self) -> None:
        assert self.forks.stdout is not None
        self.answers = TextReceiveStream(self.forks.stdout)

    async def ask(self, key: str, message: Message[Any], dies_at: int = 0) -> int:
        """Let a process ask and wait; answers the code that it ended with."""
        asked = {
            "key": key,
            "name": type(message).__name__,
            "message": orjson.loads(encode(message)),
            "dies_at": dies_at,
        }
        assert self.forks.stdin is not None
        with anyio.fail_after(240):
            await self.forks.stdin.send(orjson.dumps(asked) + b"\n")
            return int(await self.answers.receive())

    async def follow(self, key: str, message: Message[Any]) -> None:
        """Let another process ask for the same and see it through; a busy one may give up."""
        codes = []
        for _ in range(3):
            codes.append(await self.ask(key, message))
            if codes[-1] == 0:
                return
        raise AssertionError(f"{codes}: {self.said.read_text()[-4_000:]}")


@asynccontextmanager
async def mortals(kind: str, database_url: str, url: str, folder: Path) -> AsyncIterator[Mortals]:
    """Fork processes that ask actors of a kind, whose outside is reached at an address."""
    said = folder / "said.txt"
    command = [sys.executable, "-m", "tests.campaigns.mortal"]
    with said.open("wb") as log:
        given = [database_url, kind, url]
        forks = await anyio.open_process(
            [*command, *given], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
        )
        try:
            yield Mortals(forks, said)
        finally:
            forks.kill()
            await forks.wait()
