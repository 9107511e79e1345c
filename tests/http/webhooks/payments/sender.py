"""The payment processor as it posts to us."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from tests.http.webhooks.merchant import Answered, call
from tolsey.actors.organization.effects import PaymentInbox
from tolsey.http.clients.payments.processor import StripePayments
from tolsey.http.webhooks.payments.receiver import PaymentEvents
from tolsey.http.webhooks.payments.signatures import sign
from tolsey.storage.database import Database, Row

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
PLATFORM, CONNECT = b"whsec_platform", b"whsec_connect"
ACCEPTED, DUPLICATE, IGNORED = (
    {"status": status} for status in ("accepted", "duplicate", "ignored")
)


@dataclass
class Processor:
    """The payment processor as it knows us: it signs and posts."""

    app: PaymentEvents
    database: Database

    async def send(
        self, parsed: object, *, secret: bytes = PLATFORM, seconds: int = 0, **headers: bytes
    ) -> Answered:
        body = parsed if isinstance(parsed, bytes) else orjson.dumps(parsed)
        signed = sign(body, secret, int(NOW.timestamp()) + seconds)
        return await self.post(body, **{"stripe-signature": signed, **headers})

    async def post(self, body: bytes, **headers: bytes) -> Answered:
        return await call(self.app, body, [(k.encode(), v) for k, v in headers.items()])

    async def rows(self) -> list[Row]:
        return await self.database.fetch(
            "SELECT * FROM payment_events ORDER BY received_at, event_id"
        )

    async def states(self) -> dict[str, tuple[str, str | None]]:
        return {
            row["event_id"]: (row["state"], row["organization_id"]) for row in await self.rows()
        }

    async def dump(self) -> str:
        """Write all that is kept, but for moments: the database's clock may have any four digits."""
        rows = [*await self.rows(), *await self.database.fetch("SELECT * FROM payment_links")]
        kept = [[one for one in row.items() if not isinstance(one[1], datetime)] for row in rows]
        return "\n".join(map(str, kept))


def inbox(
    database: Database, clock: Callable[[], datetime] = lambda: NOW, **given: Any
) -> PaymentInbox:
    """Make the inbox of a process that nobody's messages are taken in."""
    options = {"offers": (), "dispatch": lambda _: None, **given}
    return PaymentInbox(database, StripePayments(None, {}), clock, **options)


def receiver(database: Database, **given: Any) -> PaymentEvents:
    secrets = b",".join((PLATFORM, CONNECT)).decode()
    return PaymentEvents(inbox(database), lambda: NOW, **{"webhook_secret": secrets, **given})
