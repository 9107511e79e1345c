"""Deliveries from the commerce platform: each becomes a message to every store it is proven for.

A raw ASGI application, because this is the hottest path of the service: read the bytes, choose
the header family, find the shop's secrets, verify, parse once, ask the store, answer.
"""

import asyncio
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, Protocol, TypeVar

import structlog

from tolsey.actors.bodies import Unreadable
from tolsey.actors.shops import is_shop_domain
from tolsey.actors.store.connection.messages import RevokeGrant
from tolsey.actors.store.deliveries.fields import clean, instant
from tolsey.actors.store.deliveries.messages import (
    AppUninstalled,
    Delivery,
    DeliveryIgnored,
    DeliveryUnreadable,
)
from tolsey.actors.store.deliveries.reading import Reading
from tolsey.actors.store.deliveries.topics import TOPICS
from tolsey.actors.store.messages import Outcome, store
from tolsey.http.privacy.opening import PrivacyRequests, PrivacyWish
from tolsey.http.web.edge import Receive, Scope, Send
from tolsey.http.webhooks.compliance import wish_of
from tolsey.http.webhooks.directory import ShopDirectory, ShopListener
from tolsey.http.webhooks.headers import (
    FAMILIES,
    ID_CHARACTERS,
    HeaderReader,
    HeadersDisagree,
    Said,
    digest_of,
)
from tolsey.http.webhooks.payloads import MalformedPayload, parse
from tolsey.http.webhooks.receiving import (
    ACCEPTED,
    BODY_BYTES,
    BODY_SECONDS,
    DUPLICATE,
    Bodies,
    DeliveryRefused,
    ReceiverAnswer,
    respond,
    storage_unavailable,
    unauthorized,
)
from tolsey.http.webhooks.signatures import is_signed
from tolsey.runtime.errors import Duplicate, RuntimeFault
from tolsey.runtime.messages import ActorId, Message
from tolsey.storage.errors import StorageError
from tolsey.storage.records.commerce.compliance import ComplianceTopic, RequestSource

log = structlog.get_logger()

Reply = TypeVar("Reply")

DELIVERY_SECONDS: Final = 4.0
"""All steps of a delivery together. The platform gives up after five seconds, of which some are the network's and the body's."""
KEEP_SHARE: Final = 0.25
"""How much of that is left, when its turn does not end, for keeping the message for later."""
TOPIC_CHARACTERS: Final = 100

APP_UNINSTALLED: Final = "app/uninstalled"
MOST_UNINSTALLS: Final = 1024

ODD: Final = re.compile(r"[^a-z0-9_/]")


class Mailboxes(Protocol):
    """What the receiver needs of the runtime."""

    async def ask(
        self,
        to: ActorId,
        message: Message[Reply],
        *,
        id: str | None = None,
        timeout: float = 30.0,  # noqa: ASYNC109 - the deadline travels with the message
    ) -> Reply:
        """Post a message and wait for its reply."""
        ...

    async def accept(
        self, to: ActorId, message: Message[Any], *, id: str, sender: str | None = None
    ) -> bool:
        """Keep a message for good, behind what its sender sent before; False when it is there already."""
        ...


class CommerceEvents:
    """The application behind `POST /api/webhooks/commerce/events`."""

    def __init__(
        self,
        mailboxes: Mailboxes,
        directory: ShopDirectory,
        requests: PrivacyRequests,
        clock: Callable[[], datetime],
        *,
        families: Sequence[bytes] = FAMILIES,
        body_bytes: int = BODY_BYTES,
        body_seconds: float = BODY_SECONDS,
        delivery_seconds: float = DELIVERY_SECONDS,
    ) -> None:
        self._mailboxes = mailboxes
        self._directory = directory
        self._requests = requests
        self._clock = clock
        self._headers = HeaderReader(families)
        self._bodies = Bodies(body_bytes, body_seconds)
        self._delivery_seconds = delivery_seconds
        self._uninstalls: dict[bytes, None] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await respond(self._answer(scope, receive), scope, send, failed="commerce.webhook.failed")

    async def _answer(self, scope: Scope, receive: Receive) -> ReceiverAnswer:
        if scope["method"] != "POST":
            raise DeliveryRefused(
                405, "method_not_allowed", "Webhooks accept POST only. Send the delivery with POST."
            )
        body = await self._bodies.take(scope, receive)
        try:
            async with asyncio.timeout(self._delivery_seconds):
                return await self._take(scope, body)
        except TimeoutError as error:
            log.warning("commerce.webhook.late", seconds=self._delivery_seconds)
            raise storage_unavailable() from error

    async def _take(self, scope: Scope, body: bytes) -> ReceiverAnswer:
        """Have a delivery take effect, or kept; the deadline of the whole cuts every step."""
        until = asyncio.get_running_loop().time() + (1 - KEEP_SHARE) * self._delivery_seconds
        try:
            said = self._headers.read(scope["headers"])
        except HeadersDisagree as error:
            raise DeliveryRefused(
                400,
                "headers_disagree",
                f"The headers contradict each other: {error}. Send consistent headers.",
            ) from error
        try:
            listeners = await self._proven(said, body)
        except DeliveryRefused:
            if _fingerprint(said, body) in self._uninstalls:
                return DUPLICATE
            raise
        if not said.topic:
            raise DeliveryRefused(
                400, "missing_topic", "The delivery has no topic header. Send the topic."
            )
        try:
            parsed = parse(body)
        except MalformedPayload as error:
            raise DeliveryRefused(
                400,
                "malformed_payload",
                f"The request body is {error}. Correct it and send it again.",
            ) from error
        delivery = self._delivery(said, body)
        wish = _wish_of(delivery, said, parsed, body)
        if wish is not None:
            return await self._open_request(wish, listeners)
        if len(listeners) == 1:
            new = await self._deliver(listeners[0], delivery, parsed, until)
        else:
            taken = (self._deliver(listener, delivery, parsed, until) for listener in listeners)
            new = any(await asyncio.gather(*taken))
        if delivery.topic == APP_UNINSTALLED:
            self._remember_uninstall(said, body)
        return ACCEPTED if new else DUPLICATE

    async def _open_request(
        self, wish: PrivacyWish, listeners: Sequence[ShopListener]
    ) -> ReceiverAnswer:
        """Keep what a shop's own app asks for, of the stores whose secret proved it (rules/shops#who-asks)."""
        proven = frozenset(one.store_id for one in listeners)
        try:
            _, is_new = await self._requests.open(replace(wish, stores=proven))
        except StorageError as error:
            raise storage_unavailable() from error
        return ACCEPTED if is_new else DUPLICATE

    def _remember_uninstall(self, said: Said, body: bytes) -> None:
        """Know a repeat of the delivery that took the secret away it could be verified with."""
        self._uninstalls[_fingerprint(said, body)] = None
        if len(self._uninstalls) > MOST_UNINSTALLS:
            self._uninstalls.pop(next(iter(self._uninstalls)))

    async def _proven(self, said: Said, body: bytes) -> list[ShopListener]:
        """Find the stores whose own secret signed the body; refuse when there is none."""
        shop = _plain(said.shop_domain).lower()
        digest = digest_of(said.signature)
        if not is_shop_domain(shop):
            is_signed(body, digest, ())
            raise unauthorized()
        cached = self._directory.cached(shop)
        try:
            listeners = await self._directory.find(shop) if cached is None else cached
            proven = _signers(listeners, body, digest)
            if not proven:
                # Its secret may have changed in another process a moment ago.
                again = await self._directory.doubt(shop, just_read=cached is None)
                if again and again != listeners:  # the time for the same secrets would tell of them
                    proven = _signers(again, body, digest)
        except StorageError as error:
            log.warning("commerce.webhook.directory_unavailable", why=str(error))
            raise storage_unavailable() from error
        if not proven:
            self._directory.note_refused(shop)
            raise unauthorized()
        return proven

    def _delivery(self, said: Said, body: bytes) -> Delivery:
        """Name the delivery: by its own id, else by its event, else by what it says."""
        topic = _plain(said.topic)
        event_id = _plain(said.event_id)[:ID_CHARACTERS] or None
        if topic not in TOPICS:
            topic = ODD.sub("_", topic.lower())[:TOPIC_CHARACTERS]
        delivery_id = _plain(said.webhook_id)[:ID_CHARACTERS]
        if not delivery_id and event_id:
            delivery_id = f"{topic}:{event_id}"
        elif not delivery_id:
            delivery_id = f"{topic}:{hashlib.sha256(body).hexdigest()}"
        return Delivery(
            id=delivery_id,
            topic=topic,
            shop_domain=_plain(said.shop_domain).lower(),
            at=self._clock(),
            event_id=event_id,
            triggered_at=_moment(said.triggered_at),
        )

    async def _deliver(
        self, listener: ShopListener, delivery: Delivery, parsed: Mapping[str, Any], until: float
    ) -> bool:
        """Hand a delivery to one store, whose turns may take until then; False when it had it before."""
        topic = TOPICS.get(delivery.topic)
        message: Message[Outcome]
        if topic is None:
            message = DeliveryIgnored(delivery)
        else:
            try:
                message = topic.read(
                    parsed, Reading(listener.store_id, listener.identity, delivery)
                )
            except Unreadable as error:
                log.warning(
                    "commerce.webhook.unreadable",
                    store_id=listener.store_id,
                    topic=delivery.topic,
                    field=error.field,
                )
                message = DeliveryUnreadable(delivery, error.field)
        id = f"webhook:{listener.store_id}:{delivery.id}"
        new = await self._taken(store(listener.store_id), message, id, until)
        # Only the first time: a late repeat must not revoke what was connected since.
        if new and isinstance(message, AppUninstalled):
            await self._revoke(listener.store_id, delivery, until)
        return new

    async def _taken(self, to: ActorId, message: Message[Outcome], id: str, until: float) -> bool:
        """Have a message take effect, or kept to take effect later; False for a repeat."""
        try:
            await self._mailboxes.ask(to, message, timeout=_left(until))
        except Duplicate:
            return False
        except (RuntimeFault, StorageError) as fault:
            # Its store is behind or cannot write now, or what came before it waits already. A repeat of a turn that did commit after
            # all is stopped by the delivery's unique row.
            log.warning("commerce.webhook.kept_for_later", store_id=to.key, why=repr(fault))
            try:
                return await self._mailboxes.accept(to, message, id=id, sender=f"webhook:{to.key}")
            except (RuntimeFault, StorageError) as error:
                raise storage_unavailable() from error
        return True

    async def _revoke(self, store_id: str, delivery: Delivery, until: float) -> None:
        """Void the store's credentials before answering; a failure never changes the answer.

        The delivery's own turn has left a durable message that does the same, so what fails here
        happens a little later.
        """
        message = RevokeGrant(
            shop_domain=delivery.shop_domain, happened_at=delivery.happened_at, at=delivery.at
        )
        try:
            await self._mailboxes.ask(store(store_id), message, timeout=_left(until))
        except (RuntimeFault, StorageError) as error:
            log.error(  # noqa: TRY400 - the fault names itself
                "commerce.webhook.uninstall_not_saved", store_id=store_id, why=repr(error)
            )
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                await self._directory.invalidate(delivery.shop_domain)


def _left(until: float) -> float:
    return max(0.0, until - asyncio.get_running_loop().time())


def _signers(
    listeners: Sequence[ShopListener], body: bytes, digest: bytes | None
) -> list[ShopListener]:
    """Say which stores' own secrets signed a body, in the time that it takes for one that nobody did."""
    if not listeners:
        is_signed(body, digest, ())
    return [listener for listener in listeners if is_signed(body, digest, listener.secrets)]


def _fingerprint(said: Said, body: bytes) -> bytes:
    """Name a request by all that was proven of it: only the very same bytes have this name."""
    parts = (said.shop_domain, said.webhook_id, said.signature)
    head = b"\0".join(part or b"" for part in parts)
    return hashlib.sha256(head + b"\0" + hashlib.sha256(body).digest()).digest()


def _wish_of(
    delivery: Delivery, said: Said, parsed: Mapping[str, Any], body: bytes
) -> PrivacyWish | None:
    """Read what a shop's own app asks for about this very shop; other bodies are deliveries like any."""
    if delivery.topic not in list(ComplianceTopic):
        return None
    try:
        wish = wish_of(ComplianceTopic(delivery.topic), parsed, body, said)
    except DeliveryRefused:
        return None
    if wish.shop_domain != delivery.shop_domain:
        return None
    return replace(wish, source=RequestSource.SHOP_APP)


def _plain(value: bytes | None) -> str:
    """Make text of a header's bytes that every column can hold."""
    return "" if value is None else clean(value.decode("latin-1"))


def _moment(value: bytes | None) -> datetime | None:
    """Read when the platform says it happened; a time that cannot be read says nothing."""
    if value is None:
        return None
    try:
        return instant(value.decode("latin-1"), "triggered-at")
    except Unreadable:
        return None
