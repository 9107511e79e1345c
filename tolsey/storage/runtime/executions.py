"""SQL for runs of scheduled jobs."""

from collections.abc import Sequence
from typing import Final

from tolsey.storage.conditions import Conditions
from tolsey.storage.database import Database
from tolsey.storage.records.runtime.executions import Execution
from tolsey.storage.tables import table_of

EXECUTIONS: Final = table_of(Execution)


async def last(
    database: Database, jobs: Sequence[str], limit: int = 1, trigger: str | None = None
) -> dict[str, list[Execution]]:
    """Read the last runs of each job, newest due time first."""
    wanted = Conditions(list(jobs), limit)
    wanted.add("trigger = {}", trigger)
    rows = await database.fetch(
        f"""
        SELECT e.* FROM unnest($1::text[]) AS wanted(name) CROSS JOIN LATERAL (
            SELECT {EXECUTIONS.selected} FROM cron_executions
            WHERE job = wanted.name AND {wanted}
            ORDER BY scheduled_at DESC LIMIT $2) e
        """,  # noqa: S608 - a constant list of columns
        *wanted.args,
    )
    found: dict[str, list[Execution]] = {job: [] for job in jobs}
    for row in rows:
        found[row["job"]].append(EXECUTIONS.read(row))
    return found


async def running(database: Database, jobs: Sequence[str]) -> dict[str, Execution]:
    """Read the run of each job that has not ended."""
    rows = await database.fetch(
        f"""
        SELECT DISTINCT ON (job) {EXECUTIONS.selected} FROM cron_executions
        WHERE job = ANY($1) AND status = 'running' ORDER BY job, started_at DESC
        """,  # noqa: S608 - a constant list of columns
        list(jobs),
    )
    return {row["job"]: EXECUTIONS.read(row) for row in rows}
