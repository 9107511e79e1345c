"""Requests of the commerce platform to tell or to forget what is kept (rules/shops#erasure).

Only the platform's own secret proves one, for the shop has left when it comes: the verifier has no place for another.
"""

from collections.abc import Mapping
from typing import Any, Final

import structlog
from pydantic import BaseModel, ConfigDict, ValidationError

from tolsey.actors.ports import Vectors
from tolsey.actors.refusals import Refusal
from tolsey.actors.shops import is_shop_domain
from tolsey.http.clients.vectors import VectorStoreFailed
from tolsey.http.privacy.opening import PrivacyRequests, PrivacyWish
from tolsey.http.web.edge import Receive, Scope, Send
from tolsey.http.webhooks.headers import (
    ID_CHARACTERS,
    HeaderReader,
    HeadersDisagree,
    Said,
    digest_of,
)
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
    unauthorized,
)
from tolsey.http.webhooks.signatures import is_signed
from tolsey.storage.chat import memory
from tolsey.storage.errors import StorageError
from tolsey.storage.records.commerce.compliance import (
    ComplianceRequest,
    ComplianceTopic,
    RequestSource,
)

log = structlog.get_logger()

SECRET: Final = "COMMERCE_CLIENT_SECRET"  # noqa: S105 - a variable's name


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


def wish_of(
    topic: ComplianceTopic, parsed: Mapping[str, Any], body: bytes, said: Said
) -> PrivacyWish:
    """Read what the platform asks for. Raises DeliveryRefused for a body that is not its topic's."""
    try:
        told = BODIES[topic].model_validate(parsed)
    except ValidationError as error:
        why = f"The body is not a {topic}."
        raise DeliveryRefused(400, "malformed_payload", why) from error
    shop = told.shop_domain.lower()
    if not is_shop_domain(shop):
        raise DeliveryRefused(
            400, "malformed_payload", "The payload has no shop domain. Send the shop domain."
        )
    customer = NamedCustomer() if isinstance(told, ShopRedact) else told.customer
    return PrivacyWish(
        topic=topic,
        source=RequestSource.PLATFORM,
        shop_domain=shop,
        body=body,
        delivery_id=(said.webhook_id or b"").decode("latin-1")[:ID_CHARACTERS],
        email=customer.email,
        customer_id=customer.id,
    )


class ComplianceRequests:
    """The application behind one of the three routes."""

    def __init__(
        self,
        topic: ComplianceTopic,
        requests: PrivacyRequests,
        vectors: Vectors,
        *,
        platform_secret: str | None,
    ) -> None:
        self._topic = topic
        self._requests = requests
        self._vectors = vectors
        self._secret = platform_secret
        self._headers = HeaderReader()
        self._bodies = Bodies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ReceiverAnswer one request."""
        await respond(self._answer(scope, receive), scope, send, failed="commerce.gdpr.failed")

    async def _answer(self, scope: Scope, receive: Receive) -> ReceiverAnswer:
        require_served(scope, SECRET, is_set=bool(self._secret))
        body = await self._bodies.take(scope, receive)
        try:
            said = self._headers.read(scope["headers"])
        except HeadersDisagree as error:
            raise DeliveryRefused(
                400,
                "headers_disagree",
                f"The headers contradict each other: {error}. Send consistent headers.",
            ) from error
        secret = (self._secret or "").encode()
        if not is_signed(body, digest_of(said.signature), (secret,)):
            raise unauthorized()
        wish = wish_of(self._topic, parsed_body(body), body, said)
        try:
            request, is_new = await self._requests.open(wish)
        except StorageError as error:
            raise storage_unavailable() from error
        if not is_new:
            return DUPLICATE
        if self._topic == ComplianceTopic.SHOP_REDACT:
            await self._purge(request)
        return ACCEPTED

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
