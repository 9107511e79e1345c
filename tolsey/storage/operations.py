"""SQL behind what operators read."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tolsey.storage.conditions import Conditions
from tolsey.storage.database import Database, Reader, Row

ACTS: Final = "event NOT LIKE 'commerce.webhook.%'"
DELIVERIES: Final = """
SELECT store_id, delivery_id, topic, shop_domain, triggered_at, created_at
FROM commerce_webhook_events e WHERE {}
ORDER BY {} LIMIT $1
"""
NEWEST: Final = "created_at DESC, delivery_id DESC"
OF_STORE: Final = """
WITH RECURSIVE topics(topic) AS (
    (SELECT topic FROM commerce_webhook_events WHERE store_id = {store} ORDER BY topic LIMIT 1)
    UNION ALL
    SELECT (
        SELECT topic FROM commerce_webhook_events
        WHERE store_id = {store} AND topic > topics.topic ORDER BY topic LIMIT 1)
    FROM topics WHERE topics.topic IS NOT NULL
)
SELECT found.* FROM (SELECT topic FROM topics WHERE topic IS NOT NULL) AS topics
CROSS JOIN LATERAL ({}) found
ORDER BY created_at DESC, delivery_id DESC LIMIT $1
"""
"""Steps from topic to topic, so that one index serves a store and a topic of it; what comes after the last is none.

On a first page each is said as a range: then no index but that of topics can serve the order. That of times would be
walked far for a topic that seldom comes, and was to its end for what comes after the last. Behind a cursor a topic is
said as it is, so that the index begins there.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which audit rows are wanted: those about one subject, or of one organization, user or event.

    Deliveries write most rows: they are found by their subject, the store, and left out of the others.
    """

    subject: str | None = None
    organization_id: str | None = None
    actor: str | None = None
    event: str | None = None


EVERY_ROW: Final = AuditFilter()


async def audit_rows(
    database: Reader, limit: int, before: int | None, wanted: AuditFilter = EVERY_ROW
) -> list[Row]:
    """Read audit rows, newest first, after a cursor."""
    said = Conditions(limit)
    said.add("id < {}", before)
    said.add("subject = {}", wanted.subject)
    said.add(f"organization_id = {{}} AND {ACTS}", wanted.organization_id)
    said.add(f"actor = {{}} AND {ACTS}", wanted.actor)
    # The events of one subject stand in an index of their own, in another order of letters.
    of_event = 'event = {} COLLATE "C"' if wanted.subject else f"event = {{}} AND {ACTS}"
    said.add(of_event, wanted.event)
    # Found in an index alone: a store that is told much makes its acts look near the end of the table.
    return await database.fetch(
        f"""
        SELECT id, event, subject, organization_id, actor, metadata::text AS metadata, created_at,
            retention
        FROM audit_log
        WHERE id = ANY (ARRAY(SELECT id FROM audit_log WHERE {said} ORDER BY id DESC LIMIT $1))
        ORDER BY id DESC
        """,  # noqa: S608 - conditions of this function
        *said.args,
    )


async def deliveries(
    database: Reader,
    limit: int,
    before: tuple[datetime, str] | None,
    store_id: str | None = None,
    topic: str | None = None,
) -> list[Row]:
    """Read deliveries, newest first, after a cursor: all, those of a store, or of one topic of a store."""
    wanted = Conditions(limit)
    if before is not None:
        wanted.add("(created_at, delivery_id) < ({}, {})", *before)
    wanted.add("store_id = {}", store_id)
    wanted.add("topic = {}", topic)
    if store_id is None or topic is not None:
        return await database.fetch(DELIVERIES.format(wanted, NEWEST), *wanted.args)
    if before is None:
        wanted.add("e.topic BETWEEN topics.topic AND topics.topic")
        each = DELIVERIES.format(wanted, f"e.topic, {NEWEST}")
    else:
        wanted.add("e.topic = topics.topic")
        each = DELIVERIES.format(wanted, NEWEST)
    store = f"${wanted.args.index(store_id) + 1}"
    return await database.fetch(OF_STORE.format(each, store=store), *wanted.args)


async def calls_of(database: Reader, kind: str, key: str, limit: int) -> list[Row]:
    """Read the calls of an actor: those that wait or are made, then failed ones, then what is done."""
    return await database.fetch(
        """
        (SELECT key, name, lane, state, attempts, due_at, last_error, request_id, created_at,
            NULL::timestamptz AS finished_at
        FROM outbox WHERE kind = $1 AND actor_key = $2 AND lane IS NOT NULL
        ORDER BY due_at LIMIT $3)
        UNION ALL
        (SELECT key, name, lane, 'failed', attempts, NULL, error, request_id, created_at, died_at
        FROM dead_letters
        WHERE kind = $1 AND actor_key = $2 AND lane IS NOT NULL AND status = 'dead'
        ORDER BY died_at DESC LIMIT $3)
        UNION ALL
        (SELECT key, name, lane, 'done', attempts, NULL, last_error, request_id, created_at,
            finished_at
        FROM finished_calls WHERE kind = $1 AND actor_key = $2
        ORDER BY finished_at DESC LIMIT $3)
        """,
        kind,
        key,
        limit,
    )


async def timers_of(database: Reader, slot: int, kind: str, key: str, limit: int) -> list[Row]:
    """Read the messages that an actor gets later, first due first."""
    return await database.fetch(
        """
        SELECT key, name AS message, due_at, attempts, last_error FROM outbox
        WHERE slot = $1 AND due_at > now() AND kind = $2 AND actor_key = $3 AND lane IS NULL
            AND held_by IS NULL
        ORDER BY due_at LIMIT $4
        """,
        slot,
        kind,
        key,
        limit,
    )


OBSTACLES: Final = """
(SELECT 'milestone_' || state AS cause, milestone AS subject,
    concat_ws(': ', reason, coalesce(detail, scope)) AS said, changed_at AS since
FROM launch_milestones WHERE store_id = $1 AND state IN ('blocked', 'failed')
ORDER BY milestone LIMIT $3)
UNION ALL
(SELECT 'payment_failing', subscription_id, status, dunning_since
FROM subscriptions WHERE organization_id = $2 AND dunning_since IS NOT NULL)
UNION ALL
(SELECT 'credits_used_up', $2, NULL, NULL FROM credit_accounts
WHERE organization_id = $2 AND NOT EXISTS (
    SELECT FROM credit_lots l WHERE l.organization_id = $2 AND NOT l.spent
        AND l.expires_at > now() AND l.remaining > l.pinned))
UNION ALL
(SELECT 'deal_disputed', d.id, d.reason, d.entered_at FROM deal_threads d
WHERE d.stage = 'DISPUTED' AND d.listing_id = ANY(ARRAY(
    SELECT id FROM listings WHERE store_id = $1 AND deleted_at IS NULL)) LIMIT $3)
UNION ALL
(SELECT 'message_given_up', name || ' (' || id || ')', concat(error, (
    SELECT '; messages that wait behind it: ' || count(*) FROM outbox
    WHERE held_by = dead_letters.id HAVING count(*) > 0)), died_at FROM dead_letters
WHERE kind = 'store' AND actor_key = $1 AND lane IS NULL AND status = 'dead'
ORDER BY died_at DESC LIMIT $3)
UNION ALL
(SELECT 'privacy_overdue', id, topic, received_at FROM compliance_requests
WHERE stores @> ARRAY[$1] AND handled_at IS NULL AND received_at < now() - $4::interval
ORDER BY received_at LIMIT $3)
"""
"""What keeps a store from going on, beside its connection and its calls."""


async def obstacles(
    database: Reader, store_id: str, organization_id: str, *, most: int, overdue: timedelta
) -> list[Row]:
    """Read what keeps a store and its organization from going on: `cause`, `subject`, what is `said`, `since` when."""
    return await database.fetch(OBSTACLES, store_id, organization_id, most, overdue)


PENDING: Final = """
SELECT key, kind, actor_key, name, lane, state, attempts, due_at, last_error, request_id,
    created_at, NULL::timestamptz AS finished_at
FROM outbox WHERE lane IS NOT NULL AND {} ORDER BY due_at, key LIMIT $1
"""
FAILED: Final = """
SELECT key, kind, actor_key, name, lane, 'failed' AS state, attempts, NULL::timestamptz AS due_at,
    error AS last_error, request_id, created_at, died_at AS finished_at
FROM dead_letters WHERE lane IS NOT NULL AND status = 'dead' AND {}
ORDER BY died_at DESC, key DESC LIMIT $1
"""
DONE: Final = """
SELECT key, kind, actor_key, name, lane, 'done' AS state, attempts, NULL::timestamptz AS due_at,
    last_error, request_id, created_at, finished_at
FROM finished_calls WHERE {} ORDER BY finished_at DESC, key DESC LIMIT $1
"""


async def calls(
    database: Reader,
    limit: int,
    after: tuple[datetime, str] | None,
    *,
    state: str | None = None,
    lane: str | None = None,
) -> list[Row]:
    """Read calls to the outside after a cursor: what is pending, first due first; or failed or done ones, newest first.

    A rare state or lane is looked for among all that are pending: an index of it would be written with every call.
    """
    sql, place = PENDING, "(due_at, key) >"
    if state == "failed":
        sql, place = FAILED, "(died_at, key) <"
    elif state == "done":
        sql, place = DONE, "(finished_at, key) <"
    wanted = Conditions(limit)
    if after is not None:
        wanted.add(f"{place} ({{}}, {{}})", *after)
    if sql is PENDING:
        wanted.add("state = {}", state)
    wanted.add("lane = {}", lane)
    return await database.fetch(sql.format(wanted), *wanted.args)


async def has_map(database: Database) -> bool:
    """Tell whether the migrations that make the map of slots have been applied."""
    row = await database.fetchrow("SELECT to_regclass('deployment') IS NOT NULL AS is_there")
    return bool(row and row["is_there"])


async def slots(database: Database) -> list[Row]:
    """Read the map of slots as it is on disk, in the order of the slots."""
    return await database.fetch(
        "SELECT slot, epoch, owner, pinned_to, claimed_at FROM slot_epochs ORDER BY slot"
    )


async def slot(database: Database, number: int) -> Row | None:
    """Read one slot of the map; none when there is no such slot."""
    return await database.fetchrow(
        "SELECT slot, epoch, owner, pinned_to, claimed_at FROM slot_epochs WHERE slot = $1", number
    )


async def due_by_slot(database: Database) -> dict[int, int]:
    """Count what is due in the outbox for the actors of each slot; of more than 100,000, a part."""
    rows = await database.fetch(
        """
        SELECT slot, count(*) AS n
        FROM (SELECT slot FROM outbox WHERE due_at <= now() LIMIT 100000) AS due GROUP BY slot
        """
    )
    return {row["slot"]: row["n"] for row in rows}
