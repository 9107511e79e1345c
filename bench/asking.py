"""Askers that ask again when they have their answer; and programs that are told what to do by lines.

The contestants of `bench/shards.py` run in processes of their own. Each reads commands as lines of
JSON and prints a line for each when it is done, in any order; it ends when its input does, so that
nothing outlives the bench.
"""

import asyncio
import gc
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any, Self

import uvloop

from bench import measure

LINE_BYTES = 4 << 20
END_SECONDS = 20.0
MOST_FAILURES = 1_000
"""An asker whose asks fail rests, and ends when this many did: it would only measure how fast."""

Result = dict[str, Any]


async def asked(
    ask: Callable[[int], Awaitable[Any]], askers: int, seconds: float, *, pause_seconds: float = 0.0
) -> Result:
    """Let askers ask for some seconds; answer how many asks were answered, and how long one took."""
    took: list[float] = []
    failures: Counter[str] = Counter()
    started = perf_counter()
    until = started + seconds

    async def one(n: int) -> None:
        while (sent := perf_counter()) < until and failures.total() < MOST_FAILURES:
            try:
                await ask(n)
            except Exception as error:  # noqa: BLE001 - every failure is counted, by its name
                failures[type(error).__name__] += 1
                await asyncio.sleep(0.01)
            took.append(perf_counter() - sent)
            if pause_seconds:
                await asyncio.sleep(pause_seconds)

    await asyncio.gather(*(one(n) for n in range(askers)))
    return seen(took, perf_counter() - started, failures)


def seen(took: list[float], elapsed: float, failures: Counter[str] | None = None) -> Result:
    """Sum up how long asks took."""
    took.sort()
    failed = failures or Counter()
    return {
        "asks": len(took),
        "failed": failed.total(),
        "failures": dict(failed),
        "per_second": (len(took) - failed.total()) / elapsed,
        "p50_ms": quantile(took, 0.5) * 1000,
        "p99_ms": quantile(took, 0.99) * 1000,
        "longest_ms": quantile(took, 1.0) * 1000,
    }


def quantile(ordered: Sequence[float], share: float) -> float:
    """Give the value that this share of the values does not pass."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def collect_seldom() -> None:
    """Collect garbage as seldom as `tolsey serve` does, in every process of every contestant."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def serve(program: Callable[[], Awaitable[None]]) -> None:
    """Run a program on the loop that suits all contestants."""
    collect_seldom()
    uvloop.run(program())  # type: ignore[arg-type]  # a coroutine function, as all programs are


async def obey(do: Callable[[str, Any], Awaitable[Any]], ready: Any = None) -> None:
    """Say that the program is ready, then do what each line of the input says, until it ends."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LINE_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    async def one(command: dict[str, Any]) -> None:
        try:
            result = {"result": await do(command["do"], command["with"])}
        except Exception as error:  # noqa: BLE001 - the bench is told, and fails there
            result = {"error": repr(error)}
        _print({"id": command["id"], **result})

    _print({"id": 0, "result": ready})
    async with asyncio.TaskGroup() as tasks:
        while line := await reader.readline():
            tasks.create_task(one(json.loads(line)))


def _print(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


class Program:
    """A program that runs beside the bench; an async context manager that ends it."""

    def __init__(self, module: str, *arguments: Any, log: Path) -> None:
        self._command = [sys.executable, "-m", module, *map(json.dumps, arguments)]
        self._log = log
        self._count = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._process: asyncio.subprocess.Process
        self._reading: asyncio.Task[None]
        self.ready: Any = None
        """What the program said when it was ready."""

    async def __aenter__(self) -> Self:
        with self._log.open("ab") as sink:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                cwd=measure.ROOT,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=sink,
                limit=LINE_BYTES,
                start_new_session=True,  # so that it can be ended with its children
            )
        self._reading = asyncio.create_task(self._read())
        try:
            self.ready = await self._expect(0, 60.0)
        except BaseException:
            await self.end()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.end()

    @property
    def pid(self) -> int:
        """Number of the program's process."""
        return self._process.pid

    async def do(self, what: str, *, within: float = 120.0, **given: Any) -> Any:
        """Let the program do something and answer what it found."""
        assert self._process.stdin is not None
        self._count += 1
        line = json.dumps({"id": self._count, "do": what, "with": given})
        self._process.stdin.write(line.encode() + b"\n")
        return await self._expect(self._count, within)

    def kill(self) -> None:
        """Kill the program as `kill -9` does."""
        self._process.kill()

    async def end(self) -> None:
        """End the program: first kindly, then with all its children."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), END_SECONDS)
        except TimeoutError:
            measure.say(f"{self._command[2]} does not end and is killed")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()
            await self._reading

    async def _expect(self, id: int, seconds: float) -> Any:
        future = self._waiting[id] = asyncio.get_running_loop().create_future()
        try:
            return await asyncio.wait_for(future, seconds)
        finally:
            self._waiting.pop(id, None)

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            if not line.startswith(b'{"id"'):
                continue  # a library's own words
            answer = json.loads(line)
            future = self._waiting.get(answer["id"])
            if future is None or future.done():
                continue
            if "error" in answer:
                future.set_exception(RuntimeError(f"{self._command[2]}: {answer['error']}"))
            else:
                future.set_result(answer["result"])
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(RuntimeError(f"{self._command[2]} ended; see {self._log}"))
