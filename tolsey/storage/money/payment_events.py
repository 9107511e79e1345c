"""SQL for the payment processor's events: each is kept once, and stands `new` until it is applied.

Whose an event is follows from our metadata, or from a link: every id that an event names belongs to
one organization, so what one event tells of a customer finds the organization of the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from tolsey.storage.conditions import Conditions
from tolsey.storage.database import Database, Reader, Row, Transaction
from tolsey.storage.records.money.payment_event import (
    EventState,
    PaymentEvent,
    WaitingEvent,
)

TAKE: Final = """
WITH linked_to AS (
    SELECT min(organization_id) AS organization_id
    FROM payment_links WHERE reference = ANY($10::text[])
    HAVING count(DISTINCT organization_id) = 1
), whose AS (
    SELECT CASE
        WHEN $11::text IS NULL THEN (SELECT organization_id FROM linked_to)
        ELSE (SELECT id FROM organizations WHERE id = $11)
    END AS organization_id
), taken AS (
    INSERT INTO payment_events AS kept (
        event_id, type, object_id, account, api_version, livemode, created_at, facts, links,
        claimed_by, organization_id, state, why
    )
    SELECT $1::text, $2::text, $3::text, $4::text, $5::text, $6::boolean, $7::timestamptz,
        $9::jsonb, $10::text[], $11::text, organization_id,
        CASE WHEN $8 = 'new' AND $12::boolean AND organization_id IS NULL
                AND NOT EXISTS (SELECT FROM sponsorships WHERE payment_ref = ANY($10)) THEN 'parked'
            ELSE $8::text END,
        $13::text
    FROM whose
    ON CONFLICT (event_id) DO UPDATE SET
        (object_id, api_version, facts, links, claimed_by, organization_id, state, why)
        = (excluded.object_id, excluded.api_version, excluded.facts, excluded.links,
           excluded.claimed_by, excluded.organization_id, excluded.state, excluded.why),
        tries = kept.tries + 1, settled_at = NULL, attempts = 0, due_at = now()
    WHERE kept.state = 'failed'
    RETURNING organization_id, state
), linked AS (
    INSERT INTO payment_links (reference, organization_id, event_id)
    SELECT reference, organization_id, $1 FROM taken, unnest($10::text[]) AS reference
    WHERE organization_id IS NOT NULL
    ORDER BY reference
    ON CONFLICT (reference) DO NOTHING
    RETURNING reference
)
SELECT state, organization_id,
    (SELECT count(*) FROM payment_links l
     WHERE l.reference = ANY($10) AND l.organization_id <> taken.organization_id) AS conflicts
FROM taken
"""

ADOPT: Final = """
WITH found AS (
    SELECT e.event_id, min(l.organization_id) AS organization_id
    FROM payment_events e JOIN payment_links l ON l.reference = ANY(e.links)
    WHERE e.state = 'parked' AND e.organization_id IS NULL AND e.claimed_by IS NULL
        AND {}
    GROUP BY e.event_id HAVING count(DISTINCT l.organization_id) = 1
), locked AS (
    SELECT e.event_id FROM payment_events e JOIN found USING (event_id)
    WHERE e.state = 'parked' ORDER BY e.event_id FOR UPDATE OF e
), adopted AS (
    UPDATE payment_events e SET state = 'new', organization_id = found.organization_id,
        due_at = now()
    FROM found JOIN locked USING (event_id) WHERE e.event_id = found.event_id
    RETURNING e.*
), linked AS (
    INSERT INTO payment_links (reference, organization_id, event_id)
    SELECT DISTINCT ON (reference) reference, organization_id, event_id
    FROM adopted, unnest(links) AS reference
    ORDER BY reference
    ON CONFLICT (reference) DO NOTHING
    RETURNING reference
)
SELECT event_id, type, account, livemode, created_at, facts, organization_id,
    ARRAY(SELECT reference FROM linked) AS linked
FROM adopted
"""
"""Rows are locked in one order, so that two that adopt the same events never wait in a circle."""

AWAITED: Final = """
SELECT event_id FROM payment_events WHERE state = 'parked' AND links && $1::text[] LIMIT 1
"""
"""Nearly always nobody waits: asking first takes half the time of adopting nothing."""

KEYS: Final = """
ARRAY['payment_event:' || event_id, 'payment_event:' || event_id || '+',
    'payment_event:' || event_id || ':given up', 'payment_event:' || event_id || '+:given up']
"""
"""What the message of an event, and the call that completes it, may be named in the outbox."""

STRANDED: Final = f"""
SELECT event_id, type, account, livemode, created_at, facts, organization_id
FROM payment_events
WHERE state = 'new' AND due_at < now() - interval '1 minute'
    AND NOT EXISTS (SELECT FROM outbox WHERE key = ANY({KEYS}))
ORDER BY due_at, received_at LIMIT $1
"""  # noqa: S608 - put together from constants
"""A release before this one applies its events itself and writes no messages: some may be left of it."""

LISTED: Final = f"""
SELECT event_id, type, object_id, account, api_version, livemode, created_at, organization_id,
    state, tries, received_at, settled_at,
    coalesce(why, (SELECT last_error FROM outbox WHERE key = ANY({KEYS}) LIMIT 1)) AS why,
    coalesce((SELECT attempts FROM outbox WHERE key = ANY({KEYS}) LIMIT 1), 0) AS attempts
FROM payment_events WHERE {{}}
ORDER BY received_at DESC, event_id DESC LIMIT $1
"""  # noqa: S608 - put together from constants

RETRY: Final = """
UPDATE payment_events SET state = 'new', why = NULL, settled_at = NULL, attempts = 0, due_at = now()
WHERE event_id = $1 AND state = 'failed' AND facts IS NOT NULL
    AND (organization_id IS NOT NULL OR claimed_by IS NULL)
RETURNING event_id, type, account, livemode, created_at, facts, organization_id
"""

INVOICE_PAID_BY: Final = """
SELECT facts->>'invoice_id' AS invoice_id, facts->>'subscription_id' AS subscription_id
FROM payment_events
WHERE organization_id = $1 AND type IN ('invoice.paid', 'invoice.payment_succeeded')
    AND facts->>'payment_intent_id' = $2
LIMIT 1
"""

HAS_ENDED: Final = """
SELECT FROM payment_events
WHERE organization_id = $1 AND object_id = $2 AND type = 'customer.subscription.deleted'
    AND state IN ('applied', 'ignored')
LIMIT 1
"""

SETTLE: Final = """
UPDATE payment_events SET state = $2, why = $3, settled_at = now()
WHERE event_id = $1 AND state = 'new'
"""


@dataclass(frozen=True, slots=True)
class Taken:
    """How an event was kept; `conflicts` counts ids of it that are known to be another's."""

    state: EventState
    organization_id: str | None
    conflicts: int


async def take(database: Reader, event: PaymentEvent) -> Taken | None:
    """Keep an event with what it tells of whose is what; None when it was kept before.

    One statement, so one commit: an event without a known organization is parked by it.
    """
    row = await database.fetchrow(
        TAKE,
        event.event_id,
        event.type,
        event.object_id,
        event.account,
        event.api_version,
        event.livemode,
        event.created_at,
        event.state.value,
        event.facts,
        list(event.links),
        event.claimed_by,
        event.needs_organization,
        event.why,
    )
    if row is None:
        return None
    return Taken(EventState(row["state"]), row["organization_id"], row["conflicts"])


async def is_awaited(database: Database, references: Sequence[str]) -> bool:
    """Tell whether a parked event names one of the references."""
    return await database.fetchrow(AWAITED, list(references)) is not None


async def adopt(
    database: Reader, references: Sequence[str] | None = None
) -> tuple[list[WaitingEvent], Sequence[str]]:
    """Find the organization of parked events: answer those, and the references that these tell of.

    Looks at the events that name one of the references; without references at every parked event.
    """
    wanted = Conditions()
    wanted.add("e.links && {}::text[]", references)
    found = [dict(row) for row in await database.fetch(ADOPT.format(wanted), *wanted.args)]
    linked = [one.pop("linked") for one in found]
    return [WaitingEvent(**one) for one in found], linked[0] if linked else ()


async def stranded(database: Database, limit: int) -> list[WaitingEvent]:
    """List events that are to be applied and that no message tells of, oldest first."""
    rows = await database.fetch(STRANDED, limit)
    return [WaitingEvent(**dict(row)) for row in rows]


async def settle(tx: Transaction, event_id: str, state: EventState, why: str | None = None) -> bool:
    """Say what became of an event in the transaction that did it; False when it was said before."""
    status: Any = await tx.execute(SETTLE, event_id, state.value, why)
    return bool(status == "UPDATE 1")


async def listed(
    database: Reader,
    limit: int,
    *,
    state: str | None = None,
    organization_id: str | None = None,
    before: tuple[datetime, str] | None = None,
) -> list[Row]:
    """List events for operators, newest first, after a place; never what was read from them."""
    wanted = Conditions(limit)
    wanted.add("state = {}", state)
    wanted.add("organization_id = {}", organization_id)
    if before is not None:
        wanted.add("(received_at, event_id) < ({}, {})", *before)
    return await database.fetch(LISTED.format(wanted), *wanted.args)


async def retry(tx: Transaction, event_id: str) -> WaitingEvent | None:
    """Let an event that failed be applied again; None when it is not one that can be."""
    row = await tx.fetchrow(RETRY, event_id)
    return None if row is None else WaitingEvent(**dict(row))


async def has_ended(database: Database, organization_id: str, subscription_id: str) -> bool:
    """Tell whether the end of a subscription was told and settled before."""
    return await database.fetchrow(HAS_ENDED, organization_id, subscription_id) is not None


async def invoice_paid_by(
    database: Database, organization_id: str, payment_intent_id: str
) -> str | None:
    """Name the subscription's invoice that is known to have been paid by a payment."""
    row = await database.fetchrow(INVOICE_PAID_BY, organization_id, payment_intent_id)
    return None if row is None or row["subscription_id"] is None else str(row["invoice_id"])
