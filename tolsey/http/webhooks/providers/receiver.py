"""The receiver of providers' events: verify, read, keep once, answer.

What an event changes here is a call that is kept with it, so that a crash after the answer loses nothing, and
what fails for good lies with the dead letters.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Final

import orjson
import structlog

from tolsey.actors.bodies import Unreadable
from tolsey.actors.job.messages import job
from tolsey.http.web.edge import Receive, Scope, Send
from tolsey.http.webhooks.providers.kinds import ProviderKind
from tolsey.http.webhooks.receiving import (
    ACCEPTED,
    DUPLICATE,
    Bodies,
    DeliveryRefused,
    ReceiverAnswer,
    parsed_body,
    require_served,
    respond,
    storage_unavailable,
)
from tolsey.http.webhooks.signatures import Forged, Stale, secrets_of
from tolsey.runtime.codec import WireForm
from tolsey.runtime.decision import Perform
from tolsey.runtime.outbox.rows import row_of
from tolsey.storage.database import Database
from tolsey.storage.errors import StorageError
from tolsey.storage.records.provider_events import ProviderEvent, ProviderEventState
from tolsey.storage.runtime import outbox
from tolsey.storage.sealing.sealed import Vault
from tolsey.storage.selling import deals
from tolsey.storage.webhooks import provider_events

log = structlog.get_logger()

KEEP_SECONDS: Final = 2.5
"""All steps of an event together: a messaging service gives up after three, and sends it again."""


class ProviderEvents:
    """The application behind `POST /api/webhooks/<kind>`; without its secret it answers 503."""

    def __init__(
        self,
        kind: ProviderKind,
        database: Database,
        vault: Vault,
        clock: Callable[[], datetime],
        *,
        secret: str | None,
        form: WireForm,
        missing: str | None = None,
    ) -> None:
        self._kind = kind
        self._database = database
        self._vault = vault
        self._clock = clock
        self._secrets = secrets_of(secret)
        self._missing = missing
        self._form = form
        self._bodies = Bodies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        failed = f"{self._kind.name}.webhook_failed"
        await respond(self._answer(scope, receive), scope, send, failed=failed)

    async def _answer(self, scope: Scope, receive: Receive) -> ReceiverAnswer:
        variable = self._missing or self._kind.setting
        require_served(scope, variable, is_set=self._missing is None and bool(self._secrets))
        body = await self._bodies.take(scope, receive)
        self._prove(scope, body)
        parsed = parsed_body(body)
        challenge = self._kind.challenge(parsed)
        if challenge is not None:
            kind = ((b"content-type", b"application/json"),)
            return ReceiverAnswer("challenge", 200, orjson.dumps(challenge), kind)
        try:
            notice = self._kind.notice(body, scope["headers"], parsed)
        except Unreadable as error:
            raise DeliveryRefused(
                422,
                "unreadable_event",
                f"The event is invalid: {error}. Check the provider's API version.",
                field=error.field,
            ) from error
        is_acted_on = notice.type in self._kind.acted_on
        event = ProviderEvent(
            provider=self._kind.name,
            event_id=notice.event_id,
            type=notice.type,
            sealed_body=provider_events.sealed(
                self._vault, self._kind.name, notice.event_id, body.decode()
            ),
            state=ProviderEventState.WAITING if is_acted_on else ProviderEventState.KEPT,
            received_at=self._clock(),
        )
        try:
            async with asyncio.timeout(KEEP_SECONDS):
                # Whoever may post what is not signed learns nothing, and has nothing kept, of what is not ours.
                if not self._kind.is_signed and not await deals.of_escrow(
                    self._database, notice.about
                ):
                    return ACCEPTED
                return ACCEPTED if await self._keep(event) else DUPLICATE
        except (StorageError, TimeoutError) as error:
            log.warning("provider.storage_unavailable", provider=self._kind.name)
            raise storage_unavailable() from error

    def _prove(self, scope: Scope, body: bytes) -> None:
        """Refuse what was not signed with a secret of ours, or too long ago."""
        try:
            self._kind.prove(body, scope["headers"], self._secrets, self._clock().timestamp())
        except Forged as error:
            raise DeliveryRefused(
                401,
                "invalid_signature",
                "The event's signature is invalid. Check the webhook signing secret.",
            ) from error
        except Stale as error:
            raise DeliveryRefused(
                401,
                "stale_signature",
                "The event's timestamp is more than 300 seconds off. Check the clocks, and"
                " send the event again.",
            ) from error

    async def _keep(self, event: ProviderEvent) -> bool:
        """Write an event down with what follows from it; False when it is there already."""
        key = f"{event.provider}:{event.event_id}"
        async with self._database.transaction() as tx:
            # What anybody could have posted too early is looked at again when it comes again.
            again = self._kind.asks_again
            is_new = await provider_events.add(tx, event, again=again)
            if is_new and self._kind.call and event.state == ProviderEventState.WAITING:
                if again:
                    key = f"{key}:{event.received_at.isoformat()}"
                call = Perform(self._kind.call(event.event_id), key=key)
                to = job(self._kind.name)
                await outbox.put(tx, [row_of(call, to, key, form=self._form)])
        return is_new
