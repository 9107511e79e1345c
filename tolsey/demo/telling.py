"""How the sandbox tells what it does: one line a step, a spinner or a bar meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

T = TypeVar("T")


class Unexpected(Exception):  # noqa: N818 - what the world did, and the sandbox cannot go on with
    """What ends the sandbox; the text says which step met what."""


WAIT_SECONDS = 60.0
LOOK_SECONDS = 0.1


@dataclass
class Teller:
    """The newcomer's terminal."""

    console: Console = field(default_factory=Console)

    def chapter(self, title: str = "") -> None:
        """Draw a line between parts."""
        self.console.rule(title)

    async def step(self, title: str, work: Callable[[], Awaitable[str]]) -> None:
        """Do one step and say what came of it."""
        with self.console.status(f"{title} ..."):
            said = await work()
        self.done(f"{title}: {said}")

    def done(self, said: str) -> None:
        """Say what is done."""
        self.console.print(f"[green]✓[/] {escape(said)}", highlight=False, soft_wrap=True)

    def failed(self, said: str) -> None:
        """Say what ends the sandbox before its time."""
        self.console.print(f"[red]✗[/] {escape(said)}", highlight=False, soft_wrap=True)

    def say(self, said: str) -> None:
        """Say anything else."""
        self.console.print(said, highlight=False, soft_wrap=True)

    def named(self, name: str, value: str) -> None:
        """Say an address, or whatever else has a name."""
        self.console.print(f"{name:>13}  {value}", highlight=False, soft_wrap=True)

    @contextmanager
    def counting(self) -> Iterator[Progress]:
        """Show bars while the block runs."""
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn())
        with Progress(*columns, MofNCompleteColumn(), console=self.console) as progress:
            yield progress


async def until(look: Callable[[], Awaitable[T | None]], what: str) -> T:
    """Look again and again until there is something to see."""
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                found = await look()
                if found is not None:
                    return found
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        raise Unexpected(f"{what} did not happen within {WAIT_SECONDS:.0f} seconds") from None
