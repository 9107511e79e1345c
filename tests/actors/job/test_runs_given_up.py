"""A run whose work was given up ends as failed, and its job can be asked again."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from tests.timing import until
from tolsey.actors.job.actor import JobActor
from tolsey.actors.job.catalogue import JOBS
from tolsey.actors.job.effects import JobEffects, Progress
from tolsey.actors.job.messages import RunNow, Tick, job
from tolsey.runtime.clock import Time
from tolsey.runtime.errors import Stopping
from tolsey.runtime.outbox.interruptions import MOST_INTERRUPTIONS
from tolsey.runtime.registry import Runtime
from tolsey.storage.database import Database
from tolsey.storage.migrate import MIGRATIONS
from tolsey.storage.runtime import slots
from tolsey.storage.runtime.journal import Journal
from tolsey.storage.runtime.outbox import Outbox

pytestmark = pytest.mark.anyio

AT = datetime(2026, 7, 1, 3, tzinfo=UTC)
NAME = "prune-audit-log"


class Work:
    """A job's work that hangs until it is let."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.done = asyncio.Event()

    async def __call__(self, scheduled_at: datetime, progress: Progress) -> Mapping[str, int]:
        del scheduled_at, progress
        self.began.set()
        await self.done.wait()
        return {"deleted": 1}


@asynccontextmanager
async def running(database: Database, work: Any, **options: Any) -> AsyncIterator[Runtime]:
    journal = Journal(database)
    async with Runtime(
        [JobActor(database)],
        journal,
        Outbox(database),
        partial(slots.versions, database),
        epochs=await slots.claim(database, "test"),
        handlers=JobEffects({NAME: work}, lambda: AT).handlers(),
        time=Time(lambda: AT),
        poll_seconds=0.02,
        **options,
    ) as runtime:
        yield runtime
    await journal.close()


async def begun(database: Database) -> None:
    """Leave a run behind whose process was stopped in the middle of it."""
    work = Work()
    async with running(database, work, grace_seconds=0.1) as runtime:
        asked = asyncio.ensure_future(runtime.ask(job(NAME), RunNow("run_1", AT)))
        await work.began.wait()
    await asyncio.wait({asked})
    assert isinstance(asked.exception(), Stopping)


async def test_a_run_that_ends_every_process_ends_as_failed_and_the_job_runs_again(
    database: Database,
) -> None:
    await begun(database)
    await database.execute("UPDATE outbox SET interruptions = $1", MOST_INTERRUPTIONS)
    work = Work()
    work.done.set()
    async with running(database, work) as runtime:
        await until(lambda: _status(database, "run_1", "failed"))
        again = await runtime.ask(job(NAME), RunNow("run_2", AT + timedelta(minutes=1)))
    assert (again.id, again.status, again.outcome) == ("run_2", "completed", '{"deleted": 1}')
    (row,) = await database.fetch("SELECT error FROM cron_executions WHERE id = 'run_1'")
    assert row["error"] == f"it ended {MOST_INTERRUPTIONS} processes"
    (dead,) = await database.fetch("SELECT name FROM dead_letters")
    assert dead["name"] == "RunJob"


async def test_a_tick_of_a_job_that_only_a_newer_release_has_waits_for_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Work()
    work.done.set()
    known = JOBS[NAME]
    monkeypatch.delitem(JOBS, NAME)
    async with running(database, work) as runtime:
        await runtime.accept(job(NAME), Tick(AT, "run_1", AT), id="tick:1")
        await until(lambda: _waits(database))
        assert not await database.fetch("SELECT FROM dead_letters")
        monkeypatch.setitem(JOBS, NAME, known)
        await until(lambda: _status(database, "run_1", "completed"))


async def test_a_stop_in_the_middle_of_a_run_fails_nothing(database: Database) -> None:
    await begun(database)
    work = Work()
    work.done.set()
    async with running(database, work):
        await until(lambda: _status(database, "run_1", "completed"))


async def test_a_run_that_is_refused_because_the_process_stops_is_made_again(
    database: Database,
) -> None:
    async def refused(scheduled_at: datetime, progress: Progress) -> Mapping[str, int]:
        del scheduled_at, progress
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_refuse())
        return {}

    async with running(database, refused) as runtime:
        asked = asyncio.ensure_future(runtime.ask(job(NAME), RunNow("run_1", AT)))
        await until(lambda: runtime.admin.effects_in_flight == 1)
    await asyncio.wait({asked})
    asked.exception()
    work = Work()
    work.done.set()
    async with running(database, work):
        await until(lambda: _status(database, "run_1", "completed"))


async def test_runs_that_were_lost_before_are_ended(database: Database) -> None:
    await begun(database)
    await database.execute(
        "INSERT INTO cron_executions (id, job, scheduled_at, trigger, started_at, status)"
        " VALUES ('run_0', 'daily-bonus', now(), 'schedule', now(), 'running')"
    )
    step = (MIGRATIONS / "0023_interruptions.sql").read_text()
    await database.execute(step[step.index("UPDATE cron_executions") :])
    assert await _status(database, "run_0", "failed")
    assert await _status(database, "run_1", "running")


async def _refuse() -> None:
    raise Stopping


async def _status(database: Database, id: str, status: str) -> bool:
    rows = await database.fetch("SELECT status FROM cron_executions WHERE id = $1", id)
    return [row["status"] for row in rows] == [status]


async def _waits(database: Database) -> bool:
    """Tell whether a row was tried, and left where it was without an attempt."""
    rows = await database.fetch("SELECT attempts, last_error FROM outbox")
    return [tuple(row) for row in rows] == [(0, "not taken")]
