"""SQL for what parts of the service are judged by, and for how they did."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from tolsey.storage.database import Reader, Transaction
from tolsey.storage.lookups import records
from tolsey.storage.records.status import ComponentDay, MeasuredComponent, PaymentTally
from tolsey.storage.tables import table_of

COMPONENTS: Final = table_of(MeasuredComponent)
DAYS: Final = table_of(ComponentDay)
MOST_COUNTED: Final = 1_000
"""More than any threshold."""


async def dead_since(database: Reader, since: datetime) -> Mapping[str, int]:
    """Count the messages that failed for good since a moment by the kind of their actor, up to a bound."""
    rows = await database.fetch(
        """
        SELECT kind, count(*)::int AS n FROM (
            SELECT kind FROM dead_letters WHERE status = 'dead' AND died_at > $1
            ORDER BY died_at DESC LIMIT $2
        ) newest GROUP BY kind
        """,
        since,
        MOST_COUNTED,
    )
    return {row["kind"]: row["n"] for row in rows}


async def overdue_lanes(database: Reader, since: datetime) -> Mapping[str, timedelta]:
    """Tell of each lane with calls that were due at a moment, and never tried, for how long its first one has been."""
    rows = await database.fetch(
        """
        SELECT lane, max($1 - due_at) AS late FROM (
            SELECT lane, due_at FROM outbox
            WHERE lane IS NOT NULL AND due_at < $1 AND state = 'waiting' AND attempts = 0
            ORDER BY due_at, key LIMIT $2
        ) waiting GROUP BY lane
        """,
        since,
        MOST_COUNTED,
    )
    return {row["lane"]: row["late"] for row in rows}


async def components(database: Reader) -> list[MeasuredComponent]:
    """Read how every part did when it was looked at last."""
    return await records(database, COMPONENTS, "true ORDER BY component")


async def days(database: Reader, since: datetime) -> list[ComponentDay]:
    """Read how every part did on each day since one."""
    return await records(database, DAYS, "day >= $1 ORDER BY component, day", since)


async def note(tx: Transaction, found: Sequence[MeasuredComponent]) -> None:
    """Keep how parts do, and count it to their day."""
    for one in found:
        await tx.execute(
            """
            INSERT INTO status_components (component, state, why, bad_times, checked_at)
            VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (component) DO UPDATE SET state = excluded.state, why = excluded.why,
                bad_times = excluded.bad_times, checked_at = excluded.checked_at
            """,
            *COMPONENTS.values_of(one),
        )
        is_down = one.state in {"partial_outage", "major_outage"}
        await tx.execute(
            """
            INSERT INTO status_days AS d (component, day, samples, slow, down)
            VALUES ($1, date_trunc('day', $2::timestamptz, 'UTC'), 1, $3, $4)
            ON CONFLICT (component, day) DO UPDATE SET samples = d.samples + 1,
                slow = d.slow + excluded.slow, down = d.down + excluded.down
            """,
            one.component,
            one.checked_at,
            int(one.state == "degraded_performance"),
            int(is_down),
        )


async def payments(database: Reader, at: datetime, window: timedelta) -> PaymentTally:
    """Count what the processor told of: payments and chargebacks in a window, failures in an hour."""
    row = await database.fetchrow(
        """
        SELECT
            (SELECT count(*) FROM payment_events WHERE type = 'payment_intent.succeeded'
                AND created_at > $1::timestamptz - $2::interval)::int AS payments,
            (SELECT count(*) FROM payment_events WHERE type = 'charge.dispute.created'
                AND created_at > $1::timestamptz - $2::interval)::int AS chargebacks,
            (SELECT count(*) FROM payment_events WHERE state = 'failed'
                AND received_at > $1::timestamptz - interval '1 hour')::int AS failed_events
        """,
        at,
        window,
    )
    assert row is not None  # noqa: S101 - three counts
    return PaymentTally(**row)


async def raised(database: Reader) -> Mapping[str, datetime]:
    """Tell which alerts are raised, and when an operator was told last."""
    rows = await database.fetch("SELECT name, told_at FROM raised_alerts ORDER BY name")
    return {row["name"]: row["told_at"] for row in rows}


async def keep_alerts(
    tx: Transaction, *, told: Sequence[str], cleared: Sequence[str], at: datetime
) -> None:
    """Note of which alerts an operator is told now, and which are over."""
    await tx.execute(
        """
        INSERT INTO raised_alerts (name, since, told_at) SELECT name, $2, $2 FROM unnest($1::text[]) AS name
        ON CONFLICT (name) DO UPDATE SET told_at = excluded.told_at
        """,
        list(told),
        at,
    )
    await tx.execute("DELETE FROM raised_alerts WHERE name = ANY($1)", list(cleared))
