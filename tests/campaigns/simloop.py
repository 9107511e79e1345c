"""An event loop with its own time and its own luck: one seed, one run.

Time passes only when nothing is ready, so a minute of timeouts costs nothing. Which of the ready
callbacks runs next is drawn from the seed: asyncio promises no order between tasks, so whatever
order comes up is one that production may see. A process is a name in the context of its tasks;
killing it drops its callbacks for good, as SIGKILL would.
"""

import asyncio
import heapq
import random
import warnings
import zlib
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar

Result = TypeVar("Result")

PROCESS: ContextVar[str] = ContextVar("process", default="world")
"""Which simulated process a callback belongs to."""

MAX_STEPS = 400_000


class Stuck(Exception):  # noqa: N818 - a finding, not a fault of the loop
    """Nothing can run any more, or the run never ends."""


class SimLoop(asyncio.BaseEventLoop):
    """Runs callbacks in a seeded order over virtual time; there is no input or output."""

    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]

    def __init__(self, seed: int | str) -> None:
        super().__init__()
        self.luck = random.Random(f"loop {seed}")  # noqa: S311 - it is to be predictable
        self.steps = 0
        self.trace = 0
        self.dead: dict[str, None] = {}
        self._now = 0.0
        self._born: list[asyncio.Task[Any]] = []
        self.set_task_factory(self._task)
        self.set_exception_handler(self._failed)
        self.failures: list[str] = []

    def time(self) -> float:
        return self._now

    def note(self, text: str) -> None:
        """Put an event of the run into its trace."""
        self.trace = zlib.crc32(f"{self._now:.6f} {text}".encode(), self.trace)

    def kill(self, process: str) -> None:
        """End a simulated process between two of its callbacks."""
        self.dead[process] = None

    def spawn(self, process: str, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """Start a task that belongs to a process."""
        return self.create_task(work, context=context_of(process))

    def play(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run to the end of `work`, then let go of whatever still waits."""
        asyncio.set_event_loop(self)
        try:
            return self.run_until_complete(work)
        finally:
            self._abandon()
            asyncio.set_event_loop(None)
            self.close()

    def _run_once(self) -> None:
        ready, scheduled = self._ready, self._scheduled
        while scheduled and scheduled[0]._cancelled:
            heapq.heappop(scheduled)._scheduled = False  # type: ignore[attr-defined]
        if not ready:
            if not scheduled:
                raise Stuck("nothing can run")
            self._now = max(self._now, scheduled[0].when())
        while scheduled and scheduled[0].when() <= self._now:
            timer = heapq.heappop(scheduled)
            timer._scheduled = False  # type: ignore[attr-defined]
            ready.append(timer)
        at = self.luck.randrange(len(ready))
        handle = ready[at]
        del ready[at]
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise Stuck("the run does not end")
        if handle.cancelled():
            return
        if self.dead and handle._context.get(PROCESS) in self.dead:  # type: ignore[attr-defined]
            return
        self.trace = (self.trace * 31 + at * 7 + len(ready)) & 0xFFFFFFFF
        handle._run()

    def _task(
        self, _: asyncio.AbstractEventLoop, work: Any, context: Context | None = None, **rest: Any
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(work, loop=self, context=context, **rest)
        self._born.append(task)
        return task

    def _failed(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        # The engine's own noise about tasks of a killed process is not a finding.
        error = context.get("exception")
        if error is not None and not isinstance(error, (asyncio.CancelledError, GeneratorExit)):
            self.failures.append(f"{context.get('message')}: {error!r}")

    def _abandon(self) -> None:
        self._ready.clear()
        self._scheduled.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of work that had not begun
            for task in self._born:
                if not task.done():
                    task._log_destroy_pending = False  # type: ignore[attr-defined]
                    with suppress(BaseException):
                        task.get_coro().close()
                elif not task.cancelled():
                    task.exception()
            self._born.clear()
        self._ready.clear()
        self._scheduled.clear()

    # What BaseEventLoop asks of a loop that does input and output.

    def _process_events(self, _: Any) -> None: ...

    def _write_to_self(self) -> None: ...


def context_of(process: str) -> Context:
    """Make a context whose callbacks belong to a process."""
    context = copy_context()
    context.run(PROCESS.set, process)
    return context


async def reply_of(process: str, delay: float, work: Callable[[], Result]) -> Result:
    """Let another process do something after a delay, and wait for what it answers."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Result] = loop.create_future()

    def run() -> None:
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - it travels to the one who asked
            if not answer.done():
                answer.set_exception(error)
        else:
            if not answer.done():
                answer.set_result(result)

    loop.call_later(delay, run, context=context_of(process))
    return await answer
