"""When the jobs run: at their times, once each, however many processes look at the clock."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import datetime
from functools import partial

import anyio

from tolsey.actors.job.catalogue import JOBS
from tolsey.actors.job.messages import Tick, TickOfNewJob, job
from tolsey.runtime.ids import new_id
from tolsey.runtime.registry import Runtime
from tolsey.runtime.timers import Timers
from tolsey.storage.database import Database
from tolsey.storage.runtime import executions


async def start_timers(
    stack: AsyncExitStack, runtime: Runtime, database: Database, clock: Callable[[], datetime]
) -> None:
    """Run what came due meanwhile, and every job when it is due, for as long as the stack is open."""
    tasks = await stack.enter_async_context(anyio.create_task_group())
    stack.callback(tasks.cancel_scope.cancel)
    await catch_up(runtime, database, clock)
    due = {name: known.expression for name, known in JOBS.items()}
    tasks.start_soon(Timers(due, partial(tick, runtime, clock), runtime.time).run)


async def tick(runtime: Runtime, clock: Callable[[], datetime], name: str) -> None:
    """Ask a job for the run of its last due time, which every process does: it runs once.

    So a clock that is ahead makes no run twice, only as early as it is ahead, and one that is behind
    finds that the run has been.
    """
    at = clock()
    due_at = JOBS[name].due_at(at)
    kind = TickOfNewJob if JOBS[name].is_new else Tick
    tick = kind(due_at, new_id("run"), at)
    await runtime.accept(job(name), tick, id=f"tick:{name}:{due_at.isoformat()}")


async def catch_up(runtime: Runtime, database: Database, clock: Callable[[], datetime]) -> None:
    """Run what came due while no process was there, once; a job that never ran waits its turn."""
    found = await executions.last(database, list(JOBS), trigger="schedule")
    for name, known in JOBS.items():
        last = found[name]
        if last and last[0].scheduled_at < known.due_at(clock()):
            await tick(runtime, clock, name)
