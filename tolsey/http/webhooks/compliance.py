"""Requests of the commerce platform to tell or to forget what is kept (rules/shops#erasure).

Only the platform's own secret proves one, for the shop has left when it comes: the verifier has no place for another.
"""

import hashlib
import hmac
from collections.abc import Callable
from datetime import datetime
from typing import Final

import structlog
from pydantic import BaseModel, ConfigDict, ValidationError

from tolsey.actors.ports import Vectors
from tolsey.actors.refusals import Refusal
from tolsey.actors.shops import is_shop_domain
from tolsey.actors.store.deliveries.identity import PURPOSE, pseudonym
from tolsey.http.clients.vectors import VectorStoreFailed
from tolsey.http.web.edge import Receive, Scope, Send
from tolsey.http.webhooks.headers import HeaderReader, HeadersDisagree, Said, digest_of
from tolsey.http.webhooks.payloads import MalformedPayload, parse
from tolsey.http.webhooks.receiving import (
    ACCEPTED,
    DUPLICATE,
    Bodies,
    DeliveryRefused,
    ReceiverAnswer,
    respond,
    storage_unavailable,
    unauthorized,
)
from tolsey.http.webhooks.signatures import is_signed
from tolsey.runtime.ids import new_id
from tolsey.storage.chat import memory
from tolsey.storage.commerce import compliance, stores
from tolsey.storage.database import Database
from tolsey.storage.errors import StorageError
from tolsey.storage.records.commerce.compliance import (
    ComplianceRequest,
    ComplianceTopic,
    CustomerRedaction,
    PendingStep,
)
from tolsey.storage.sealing.sealed import Vault

log = structlog.get_logger()

SECRET: Final = "COMMERCE_CLIENT_SECRET"  # noqa: S105 - a variable's name
NOT_SET: Final = f"Set {SECRET}: it proves that the platform asks."
LABEL: Final = b"compliance:v1:"
"""What the platform's secret is turned into a shop's key with: a request may span several stores."""


class Told(BaseModel):
    """A body of exactly these fields: that of another route is refused (rules/shops#erasure)."""

    model_config = ConfigDict(extra="forbid", strict=True)


class NamedCustomer(Told):
    """Whom a request is about, as far as the platform says."""

    id: int | None = None
    email: str | None = None
    phone: str | None = None


class ShopRedact(Told):
    """A shop is to be forgotten."""

    shop_id: int
    shop_domain: str


class DataRequested(Told):
    """The number of a request for data."""

    id: int


class DataRequest(Told):
    """A customer wants to know what is kept."""

    shop_id: int
    shop_domain: str
    customer: NamedCustomer
    orders_requested: list[int]
    data_request: DataRequested


class CustomerRedact(Told):
    """A customer wants to be forgotten."""

    shop_id: int
    shop_domain: str
    customer: NamedCustomer
    orders_to_redact: list[int]


BODIES: Final[dict[ComplianceTopic, type[ShopRedact | DataRequest | CustomerRedact]]] = {
    ComplianceTopic.SHOP_REDACT: ShopRedact,
    ComplianceTopic.DATA_REQUEST: DataRequest,
    ComplianceTopic.CUSTOMER_REDACT: CustomerRedact,
}


COMPLIANCE_PATHS: Final = {
    ComplianceTopic.SHOP_REDACT: "/api/webhooks/commerce/redact",
    ComplianceTopic.DATA_REQUEST: "/api/webhooks/commerce/data-request",
    ComplianceTopic.CUSTOMER_REDACT: "/api/webhooks/commerce/customer-redact",
}


class ComplianceRequests:
    """The application behind one of the three routes."""

    def __init__(
        self,
        topic: ComplianceTopic,
        database: Database,
        vault: Vault,
        vectors: Vectors,
        clock: Callable[[], datetime],
        *,
        platform_secret: str | None,
    ) -> None:
        self._topic = topic
        self._database = database
        self._vault = vault
        self._vectors = vectors
        self._clock = clock
        self._secret = platform_secret
        self._headers = HeaderReader()
        self._bodies = Bodies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ReceiverAnswer one request."""
        await respond(self._answer(scope, receive), scope, send, failed="commerce.gdpr.failed")

    async def _answer(self, scope: Scope, receive: Receive) -> ReceiverAnswer:
        if scope["method"] != "POST":
            raise DeliveryRefused(405, "method_not_allowed", "Deliveries are posted.")
        if not self._secret:
            raise DeliveryRefused(503, "missing_credential", NOT_SET, variable=SECRET)
        body = await self._bodies.take(scope, receive)
        try:
            said = self._headers.read(scope["headers"])
        except HeadersDisagree as error:
            raise DeliveryRefused(
                400, "headers_disagree", f"The headers disagree: {error}."
            ) from error
        secret = self._secret.encode()
        if not is_signed(body, digest_of(said.signature), (secret,)):
            raise unauthorized()
        told = self._read(body)
        shop = told.shop_domain.lower()
        if not is_shop_domain(shop):
            raise DeliveryRefused(400, "malformed_payload", "The body names no shop.")
        key = hmac.digest(secret, LABEL + shop.encode(), "sha256")
        try:
            request = await self._record(told, shop, key, self._delivery_id(said, body, key), body)
        except StorageError as error:
            raise storage_unavailable() from error
        if request is None:
            return DUPLICATE
        if self._topic == ComplianceTopic.SHOP_REDACT:
            await self._purge(request)
        return ACCEPTED

    def _read(self, body: bytes) -> ShopRedact | DataRequest | CustomerRedact:
        try:
            return BODIES[self._topic].model_validate(parse(body))
        except (MalformedPayload, ValidationError) as error:
            why = str(error) if isinstance(error, MalformedPayload) else f"not a {self._topic}"
            raise DeliveryRefused(400, "malformed_payload", f"The body is {why}.") from error

    @staticmethod
    def _delivery_id(said: Said, body: bytes, key: bytes) -> str:
        named = (said.webhook_id or b"").decode("latin-1")[:200]
        return named or hmac.digest(key, body, "sha256").hex()

    async def _record(
        self,
        told: ShopRedact | DataRequest | CustomerRedact,
        shop: str,
        key: bytes,
        delivery_id: str,
        body: bytes,
    ) -> ComplianceRequest | None:
        """Keep the request before anything else is done; None for one that is kept already."""
        keys = await compliance.stores_of(self._database, shop)
        customer = None if isinstance(told, ShopRedact) else told.customer
        request = ComplianceRequest(
            id=new_id("req"),
            topic=self._topic,
            shop_domain=shop,
            delivery_id=delivery_id,
            body_digest=hmac.digest(key, body, hashlib.sha256).hex(),
            email_hash=pseudonym(key, customer.email, customer.id) if customer else None,
            stores=tuple(keys),
            shop_keys=tuple(keys.values()),
            received_at=self._clock(),
            pending_steps=tuple(PendingStep) if customer is None else (),
        )
        subjects = [] if customer is None else await self._subjects(request, customer)
        async with self._database.transaction() as tx:
            if not await compliance.record(tx, request, subjects):
                return None
        return request

    async def _subjects(
        self, request: ComplianceRequest, customer: NamedCustomer
    ) -> list[CustomerRedaction]:
        """Tell whom each store of the shop knows the customer as; the address itself is not kept."""
        found: dict[tuple[str, str], CustomerRedaction] = {}
        for store_id, key in zip(request.stores, request.shop_keys, strict=True):
            salt = await stores.salt_of(self._database, self._vault, store_id, request.shop_domain)
            if salt is None:  # its pseudonyms can be linked by nobody any more
                continue
            identity = self._vault.subkey(salt, PURPOSE)
            # A row of a customer without an address is known by the platform's id.
            for email, id in ((customer.email, None), (None, customer.id)):
                known = pseudonym(identity, email, id)
                if known is not None:
                    found[key, known] = CustomerRedaction(
                        request_id=request.id,
                        store_id=key,
                        subject_key=f"{request.shop_domain}:{known}",
                        email_hash=known,
                    )
        return list(found.values())

    async def _purge(self, request: ComplianceRequest) -> None:
        """Empty the stores' memory; a failure never changes the answer, for the job tries again."""
        for store_id in request.stores:
            try:
                await self._vectors.purge(memory.namespaces_of(store_id))
            except (StorageError, VectorStoreFailed, Refusal) as error:
                log.error(  # noqa: TRY400 - the fault names itself
                    "commerce.gdpr.shop_redact.vector_purge_failed",
                    store_id=store_id,
                    why=type(error).__name__,
                )
