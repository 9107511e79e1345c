"""The campaign of money: histories on paper by the thousand, then many at once on the real service.

`python -m tests.campaigns.money.campaign SEED SECONDS` runs it; it can be stopped at any time.
"""

import asyncio
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from tests.campaigns.money.disk import Disk
from tests.campaigns.money.histories import live, reversed_otherwise, told_otherwise
from tests.conftest import memory
from tolsey.storage.database import Database
from tolsey.storage.embedded.servers import EmbeddedServers
from tolsey.storage.migrate import migrate

PROGRESS_SECONDS = 5.0
LIVES, STEPS = 24, 40
DEATHS = "crashes", "died ", "lost before", "done, not"

Say = Callable[[str], None]


class Tally:
    """What a campaign did so far, and what it found."""

    def __init__(self, seed: int, say: Say) -> None:
        self.found: list[str] = []
        self.seen: Counter[str] = Counter()
        self._seed = seed
        self._say = say
        self._began = self._shown = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def add(self, what: str, found: list[str], seen: Counter[str]) -> None:
        """Count a part of the campaign."""
        self.seen[what.split(maxsplit=1)[0]] += 1
        self.seen += seen
        for one in found:
            self.found.append(f"{what}: {one}")
            self._say(f"FOUND {self.found[-1]}")
        if time.monotonic() - self._shown > PROGRESS_SECONDS:
            self._shown = time.monotonic()
            self._say(str(self))

    def __str__(self) -> str:
        events = sum(n for name, n in self.seen.items() if name.startswith("event "))
        crashes = sum(n for name, n in self.seen.items() if name.startswith(DEATHS))
        return (
            f"money seed={self._seed} seconds={self.seconds:.0f} histories={self.seen['history']}"
            f" orders={self.seen['order']} reversals={self.seen['reversal']} on_disk={self.seen['disk']} events={events}"
            f" entries={self.seen['entries']} crashes={crashes} findings={len(self.found)}"
        )


def on_paper(tally: Tally, seed: int, seconds: float, at_least: int = 1) -> None:
    """Live histories without a database, each told in another order too; and reversals of months."""
    until, number = tally.seconds + seconds, seed * 1_000_000
    while tally.seconds < until or tally.seen["history"] < at_least:
        number += 1
        lived = live(number)
        tally.add(f"history {number}", lived.found, lived.seen)
        tally.add(f"order {number}", told_otherwise(number), Counter())
        tally.add(f"reversal {number}", reversed_otherwise(number), Counter())


async def on_disk(
    tally: Tally, seed: int, seconds: float, database: Database, lives: int = LIVES
) -> None:
    """Live histories on the real service, until the time is up; at least one round of them."""
    until, number = tally.seconds + seconds, seed * 1_000
    while tally.seconds < until or number == seed * 1_000:
        number += 1
        report = await Disk(number, database, lives=lives, steps=STEPS).live()
        tally.add(f"disk {number}", report.found, report.seen)


@asynccontextmanager
async def opened() -> AsyncIterator[Database]:
    """Open a database of one's own, in memory where there is room."""
    folder = Path(tempfile.mkdtemp(prefix="tolsey-money-", dir=memory()))
    folder.chmod(0o755)  # the servers may run as another user
    servers = EmbeddedServers(folder / "servers")
    try:
        await asyncio.to_thread(servers.__enter__)
        try:
            await migrate(servers.database_url)
            database = Database(servers.database_url)
            await database.open()
            yield database
            await database.close()
        finally:
            await asyncio.to_thread(servers.__exit__, None, None, None)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _campaign(tally: Tally, seed: int, seconds: float) -> None:
    async with opened() as database:
        await on_disk(tally, seed, seconds / 2, database)


def main(seed: str, seconds: str) -> int:
    """Run a campaign by hand."""

    def say(line: str) -> None:
        print(line, flush=True)  # noqa: T201 - progress and figures are what it is for

    structlog.configure(processors=[_drop])
    tally = Tally(int(seed), say)
    try:
        on_paper(tally, int(seed), float(seconds) / 2)
        asyncio.run(_campaign(tally, int(seed), float(seconds)))
    except KeyboardInterrupt:
        say("stopped")
    for name, times in sorted(tally.seen.items()):
        say(f"{times:9} {name}")
    say(str(tally))
    return bool(tally.found)


def _drop(*_: object) -> str:
    """Say nothing of each death: they are the point here."""
    raise structlog.DropEvent


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
