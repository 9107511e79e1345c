"""The receiver of the payment processor's events: verify, read, keep once, answer.

A raw ASGI application. An event whose organization is known stands `new` in `payment_events`, and as a
message to that organization in the outbox, before the answer leaves: a crash after it loses nothing.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import structlog

from tolsey.actors.bodies import Unreadable
from tolsey.actors.organization.billing.payment_events.catalogue import TYPES, keep, read
from tolsey.actors.organization.billing.payment_events.envelopes import (
    EventEnvelope,
    is_thin,
    open_envelope,
)
from tolsey.actors.organization.effects import PaymentInbox
from tolsey.http.web.edge import Receive, Scope, Send
from tolsey.http.webhooks.payments.signatures import verify
from tolsey.http.webhooks.receiving import (
    ACCEPTED,
    DUPLICATE,
    IGNORED,
    Bodies,
    DeliveryRefused,
    ReceiverAnswer,
    parsed_body,
    require_served,
    respond,
    storage_unavailable,
)
from tolsey.http.webhooks.signatures import Forged, Stale, secrets_of
from tolsey.storage.errors import StorageError
from tolsey.storage.records.money.payment_event import EventState, PaymentEvent

log = structlog.get_logger()

SECRET: Final = "PAYMENTS_WEBHOOK_SECRET"  # noqa: S105 - the variable's name
SIGNATURE: Final = b"stripe-signature"
KEEP_SECONDS: Final = 8.0
"""All steps of an event together: the processor gives up after ten, and sends it again."""
LIVE: Final = ("sk_live_", "rk_live_")
TEST: Final = ("sk_test_", "rk_test_")


class PaymentEvents:
    """The application behind `POST /api/webhooks/payments`.

    With no webhook secret it answers 503. The processor's key tells whether events of live money
    or of test money are ours; connected accounts send both to one address.
    """

    def __init__(
        self,
        inbox: PaymentInbox,
        clock: Callable[[], datetime],
        *,
        webhook_secret: str | None,
        secret_key: str | None = None,
        bodies: Bodies | None = None,
    ) -> None:
        self._inbox = inbox
        self._clock = clock
        self._secrets = secrets_of(webhook_secret)
        self._livemode = _livemode_of(secret_key)
        self._bodies = bodies or Bodies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await respond(self._answer(scope, receive), scope, send, failed="payments.webhook_failed")

    async def _answer(self, scope: Scope, receive: Receive) -> ReceiverAnswer:
        require_served(scope, SECRET, is_set=bool(self._secrets))
        body = await self._bodies.take(scope, receive)
        self._prove(scope, body)
        parsed = parsed_body(body)
        if is_thin(parsed):
            log.info("payments.thin_event_ignored", type=str(parsed.get("type"))[:100])
            return IGNORED
        try:
            envelope = open_envelope(parsed)
        except Unreadable as error:
            log.error("payments.event_unreadable", field=error.field)  # noqa: TRY400 - it names itself
            raise unreadable(error.field) from error
        if envelope.type not in TYPES:
            log.info("payments.event_ignored", type=envelope.type, event_id=envelope.event_id)
            return IGNORED
        return await self._keep(self._read(envelope))

    def _prove(self, scope: Scope, body: bytes) -> None:
        """Refuse what was not signed with a secret of ours a moment ago."""
        claims = [value for name, value in scope["headers"] if name == SIGNATURE]
        claim = claims[0] if len(claims) == 1 else b""
        try:
            verify(body, claim, self._secrets, self._clock().timestamp())
        except Forged as error:
            raise DeliveryRefused(
                401,
                "invalid_signature",
                "The event's signature is invalid. Check the webhook signing secret.",
            ) from error
        except Stale as error:
            log.warning("payments.signature_stale")
            raise DeliveryRefused(
                401,
                "stale_signature",
                "The event's timestamp is more than 300 seconds off. Check the clocks, and"
                " send the event again.",
            ) from error

    def _read(self, envelope: EventEnvelope) -> PaymentEvent:
        """Make the row of an event; one that is not ours or cannot be read has no facts."""
        if envelope.account is not None and not TYPES[envelope.type].of_accounts:
            return _row(envelope, EventState.IGNORED, why="foreign_account")
        if self._livemode not in {None, envelope.livemode}:
            return _row(envelope, EventState.IGNORED, why="other_mode")
        try:
            facts = read(envelope)
        except Unreadable as error:
            return _row(envelope, EventState.FAILED, why=f"unreadable: {error.field}"[:200])
        return _row(
            envelope,
            EventState.NEW,
            facts=keep(facts),
            links=facts.links,
            claimed_by=facts.said.organization_id,
            needs_organization=facts.needs_organization,
        )

    async def _keep(self, event: PaymentEvent) -> ReceiverAnswer:
        """Write an event down and say what became of it."""
        said = log.bind(event_id=event.event_id, type=event.type, account=event.account)
        until = asyncio.get_running_loop().time() + KEEP_SECONDS
        try:
            async with asyncio.timeout_at(until):
                taken = await self._inbox.take(event)
        except (StorageError, TimeoutError) as error:
            said.warning("payments.storage_unavailable", why=type(error).__name__)
            raise storage_unavailable() from error
        if taken is None:
            return DUPLICATE
        if taken.state == EventState.FAILED:
            said.error("payments.event_unreadable", why=event.why, api_version=event.api_version)
            raise unreadable((event.why or "").removeprefix("unreadable: "))
        if taken.state == EventState.IGNORED:
            said.warning("payments.event_not_ours", why=event.why)
            return IGNORED
        if taken.conflicts:
            said.error("payments.links_disagree", organization_id=taken.organization_id)
        if taken.state == EventState.PARKED:
            said.warning("payments.event_parked")
        await self._adopt(event, until)
        return ACCEPTED

    async def _adopt(self, event: PaymentEvent, until: float) -> None:
        """Find the organization of events that waited for what this one tells, or of this one.

        It runs after the commit: of two events that arrive at once, the later sees the other. The
        event is safe on disk, so a failure never changes the answer.
        """
        try:
            async with asyncio.timeout_at(until):
                await self._inbox.adopt(event.links)
        except (StorageError, TimeoutError) as error:
            log.warning("payments.adoption_failed", why=type(error).__name__)


def unreadable(field: str) -> DeliveryRefused:
    """Refuse an event of a shape that is not known: the processor keeps it and sends it again."""
    return DeliveryRefused(
        422,
        "unreadable_event",
        f"The event's field {field} is invalid. Check the event's API version.",
        field=field,
    )


def _row(envelope: EventEnvelope, state: EventState, **read: Any) -> PaymentEvent:
    return PaymentEvent(
        event_id=envelope.event_id,
        type=envelope.type,
        object_id=envelope.object_id,
        account=envelope.account,
        api_version=envelope.api_version,
        livemode=envelope.livemode,
        created_at=envelope.created_at,
        state=state,
        **read,
    )


def _livemode_of(secret_key: str | None) -> bool | None:
    """Tell which money the processor's key moves; None when there is no key to tell."""
    if secret_key is None:
        return None
    if secret_key.startswith(LIVE):
        return True
    return False if secret_key.startswith(TEST) else None
