"""SQL for runs of scheduled jobs."""

from collections.abc import Sequence

from tolsey.storage.conditions import Conditions
from tolsey.storage.database import Database
from tolsey.storage.records.runtime.executions import Execution, ExecutionStarted
from tolsey.storage.tables import table

_STARTED = {
    "id": "text",
    "job": "text",
    "scheduled_at": "timestamptz",
    "trigger": "text",
    "started_at": "timestamptz",
    "status": "text",
}

table(
    ExecutionStarted,
    "cron_executions",
    _STARTED,
    key=("job", "scheduled_at"),
    claim=True,
)
table(
    Execution,
    "cron_executions",
    {**_STARTED, "finished_at": "timestamptz", "outcome": "jsonb", "error": "text"},
    conflict="""ON CONFLICT (id) DO UPDATE SET status = excluded.status,
        finished_at = excluded.finished_at, outcome = excluded.outcome, error = excluded.error""",
    key=("id",),
)

_COLUMNS = (
    "id, job, scheduled_at, trigger, started_at, status, finished_at, outcome::text AS outcome,"
    " error"
)


async def last(
    database: Database, jobs: Sequence[str], limit: int = 1, trigger: str | None = None
) -> dict[str, list[Execution]]:
    """Read the last runs of each job, newest due time first."""
    wanted = Conditions(list(jobs), limit)
    wanted.add("trigger = {}", trigger)
    rows = await database.fetch(
        f"""
        SELECT e.* FROM unnest($1::text[]) AS wanted(name) CROSS JOIN LATERAL (
            SELECT {_COLUMNS} FROM cron_executions
            WHERE job = wanted.name AND {wanted}
            ORDER BY scheduled_at DESC LIMIT $2) e
        """,  # noqa: S608 - a constant list of columns
        *wanted.args,
    )
    found: dict[str, list[Execution]] = {job: [] for job in jobs}
    for row in rows:
        found[row["job"]].append(Execution(**dict(row)))
    return found


async def running(database: Database, jobs: Sequence[str]) -> dict[str, Execution]:
    """Read the run of each job that has not ended."""
    rows = await database.fetch(
        f"""
        SELECT DISTINCT ON (job) {_COLUMNS} FROM cron_executions
        WHERE job = ANY($1) AND status = 'running' ORDER BY job, started_at DESC
        """,  # noqa: S608 - a constant list of columns
        list(jobs),
    )
    return {row["job"]: Execution(**dict(row)) for row in rows}
