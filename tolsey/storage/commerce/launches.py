"""SQL for launches."""

from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import orjson

from tolsey.storage.database import Database
from tolsey.storage.records.commerce.launches import (
    Launch,
    LaunchAttempt,
    LaunchMilestone,
    SoldHour,
    StoreLaunch,
)
from tolsey.storage.sealing.sealed import Vault
from tolsey.storage.tables import table_of

LAUNCHES: Final = table_of(StoreLaunch)
MILESTONES: Final = table_of(LaunchMilestone)
ATTEMPTS: Final = table_of(LaunchAttempt)
PASSWORD: Final = {"table": "store_launches", "column": "storefront_password"}
PAGE: Final = 1_000
FEWEST_TOLD_OF: Final = 20
"""Of fewer stores nothing is told: it would say little, and of whom (rules/launch#forecast)."""
MOST_TOLD_OF: Final = 200


async def load(database: Database, store_ids: Sequence[str]) -> Mapping[str, Launch]:
    """Read the launches of stores; a store without one is absent."""
    heads = await database.fetch(
        f"SELECT {LAUNCHES.selected} FROM store_launches WHERE store_id = ANY($1::text[])",  # noqa: S608 - names of our own table
        list(store_ids),
    )
    if not heads:
        return {}
    rows = await database.fetch(
        f"SELECT {MILESTONES.selected} FROM launch_milestones WHERE store_id = ANY($1::text[])",  # noqa: S608 - names of our own table
        [row["store_id"] for row in heads],
    )
    milestones: dict[str, dict[str, LaunchMilestone]] = defaultdict(dict)
    for row in rows:
        milestones[row["store_id"]][row["milestone"]] = MILESTONES.read(row)
    return {
        row["store_id"]: Launch(head=LAUNCHES.read(row), milestones=milestones[row["store_id"]])
        for row in heads
    }


async def find(database: Database, store_id: str) -> Launch | None:
    """Read the launch of a store."""
    return (await load(database, [store_id])).get(store_id)


def seal_password(vault: Vault, store_id: str, password: str) -> str:
    """Seal the password that keeps buyers out of a store until it opens."""
    return vault.seal(password, **PASSWORD, row=store_id, tenant=store_id)


def open_password(vault: Vault, store_id: str, sealed: str) -> str:
    """Open the password of a storefront; SealBroken when it cannot be."""
    return vault.open(sealed, **PASSWORD, row=store_id, tenant=store_id)


async def version(database: Database, store_id: str) -> str:
    """Name how a store's launch stands: another text once anything of it moved, however fast."""
    (row,) = await database.fetch(
        """
        SELECT md5(concat((SELECT concat_ws(' ', l.reason, l.alarms, l.changed_at) FROM store_launches l WHERE store_id = $1), (
            SELECT string_agg(concat_ws(' ', m.milestone, m.state, m.run, m.attempts, m.reason,
                m.not_before, m.is_hinted, m.note), ',' ORDER BY m.milestone)
            FROM launch_milestones m WHERE store_id = $1
        ))) AS version
        """,
        store_id,
    )
    return str(row["version"])


async def modules(database: Database, store_id: str) -> dict[str, Any]:
    """Read all modules of a store's context, by their names."""
    rows = await database.fetch(
        "SELECT module, value FROM store_contexts WHERE store_id = $1", store_id
    )
    return {row["module"]: orjson.loads(row["value"]) for row in rows}


async def attempts(database: Database, store_id: str, milestone: str) -> Sequence[LaunchAttempt]:
    """List the tries of a milestone, the last first."""
    rows = await database.fetch(
        f"SELECT {ATTEMPTS.selected} FROM launch_attempts"  # noqa: S608 - names of our own table
        " WHERE store_id = $1 AND milestone = $2 ORDER BY run DESC, attempt DESC LIMIT 100",
        store_id,
        milestone,
    )
    return [ATTEMPTS.read(row) for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingLaunch:
    """A launch that a tick has something to do for: something to send or unblock, to look for, or to write people about."""

    store_id: str
    has_work: bool
    is_looking: bool
    is_reminding: bool


async def waiting(
    database: Database, at: datetime, hours: Mapping[str, Sequence[int]]
) -> AsyncIterator[list[WaitingLaunch]]:
    """List the launches that wait for something that a tick can do, a page at a time.

    `hours` are those after which people are written to about a milestone whose turn came.
    """
    after = ""
    moments = [(id, one) for id, some in hours.items() for one in some]
    while True:
        rows = await database.fetch(
            """
            SELECT l.store_id, l.has_work, l.is_looking, EXISTS (
                SELECT FROM launch_milestones m WHERE m.store_id = l.store_id
                    AND m.state = 'pending' AND m.queued_at IS NOT NULL AND m.reminders < (
                        SELECT count(*) FROM unnest($4::text[], $5::int[]) AS due (milestone, hours)
                        WHERE due.milestone = m.milestone
                            AND m.queued_at + due.hours * interval '1 hour' <= $3
                    )
            ) AS is_reminding
            FROM store_launches l JOIN stores s ON s.id = l.store_id AND s.deleted_at IS NULL
            WHERE (l.has_work OR l.is_looking) AND l.store_id > $1 ORDER BY l.store_id LIMIT $2
            """,
            after,
            PAGE,
            at,
            [id for id, _ in moments],
            [one for _, one in moments],
        )
        if not rows:
            return
        yield [WaitingLaunch(**dict(row)) for row in rows]
        after = rows[-1]["store_id"]


async def deliveries(
    database: Database, store_id: str, *, topics: Sequence[str], since: datetime
) -> dict[str, int]:
    """Count what a shop told of since then, by topic."""
    rows = await database.fetch(
        """
        SELECT topic, count(*)::int AS deliveries FROM commerce_webhook_events
        WHERE store_id = $1 AND topic = ANY($2::text[]) AND created_at >= $3 GROUP BY topic
        """,
        store_id,
        list(topics),
        since,
    )
    return {row["topic"]: row["deliveries"] for row in rows}


async def sold_by_hour(
    database: Database, store_id: str, *, since: datetime, until: datetime
) -> Sequence[SoldHour]:
    """List the hours of a time, of a week at most, in which a store sold or gave back something."""
    rows = await database.fetch(
        """
        SELECT at, currency, sum(orders)::bigint AS orders, sum(gross_minor)::bigint AS gross_minor,
            sum(refunded_minor)::bigint AS refunded_minor
        FROM commerce_sales
        WHERE store_id = $1 AND minutes = 60 AND at >= date_trunc('hour', $2::timestamptz)
            AND at < least($3, $2 + interval '7 days') AND currency <> ''
        GROUP BY at, currency ORDER BY at, currency LIMIT 1000
        """,
        store_id,
        since,
        until,
    )
    return [SoldHour(**dict(row)) for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDuration:
    """How long a milestone took other stores from when its turn came: their number, median and 90th percentile."""

    milestone: str
    stores: int
    median_seconds: int
    p90_seconds: int


async def durations(
    database: Database, store_id: str, milestones: Sequence[str]
) -> Sequence[StepDuration]:
    """Say how long milestones took the stores that were done with it last, but this one; few stores tell nothing.

    What was done before its turn came, as a look at the shop may find, took no time that anybody waited.
    """
    rows = await database.fetch(
        """
        SELECT named.milestone, count(*)::int AS stores,
            percentile_cont(0.5) WITHIN GROUP (ORDER BY took)::int AS median_seconds,
            percentile_cont(0.9) WITHIN GROUP (ORDER BY took)::int AS p90_seconds
        FROM unnest($2::text[]) AS named (milestone), LATERAL (
            SELECT extract(epoch FROM m.finished_at - m.queued_at)::float AS took
            FROM launch_milestones m
            WHERE m.milestone = named.milestone AND m.state IN ('succeeded', 'approved')
                AND m.finished_at >= m.queued_at AND m.store_id <> $1
            ORDER BY m.finished_at DESC LIMIT $3
        ) AS lately
        GROUP BY named.milestone HAVING count(*) >= $4
        """,
        store_id,
        list(milestones),
        MOST_TOLD_OF,
        FEWEST_TOLD_OF,
    )
    return [StepDuration(**dict(row)) for row in rows]
