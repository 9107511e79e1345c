"""The events of the processor that wait to be applied."""

from tolsey.storage.database import Database
from tolsey.storage.records.money.payment_event import WaitingEvent

WAITING = """
SELECT event_id, type, account, livemode, created_at, facts, organization_id
FROM payment_events WHERE state = 'new' ORDER BY received_at, event_id
"""


async def waiting_events(database: Database) -> list[WaitingEvent]:
    """List events that are to be applied, oldest first."""
    return [WaitingEvent(**dict(row)) for row in await database.fetch(WAITING)]
