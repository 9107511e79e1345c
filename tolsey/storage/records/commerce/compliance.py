"""Requests to tell or to forget what is kept of a shop or of its customers, and what was done about them."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

from tolsey.storage.owners import ID_ALONE, Belongs, RowOwner
from tolsey.storage.tables import Personal, Sealed, stored


class ComplianceTopic(StrEnum):
    """What the platform asks for."""

    SHOP_REDACT = "shop/redact"
    DATA_REQUEST = "customers/data_request"
    CUSTOMER_REDACT = "customers/redact"


class RequestSource(StrEnum):
    """Who asked, and so what proved it (rules/shops#who-asks)."""

    PLATFORM = "platform"
    SHOP_APP = "shop_app"
    """An app that the merchant made, under the shop's own secret."""
    MERCHANT = "merchant"
    UNINSTALL = "uninstall"
    """The app was removed and nobody connected the shop again."""


class Leg(StrEnum):
    """What is done about a request by itself, store by store (rules/shops#erasure)."""

    ANSWER = "answer"
    """What is kept of a customer is written to a file for the merchant."""

    CREDENTIALS = "credentials"
    VECTORS = "vectors"
    WEBHOOK_ARCHIVE = "webhook-archive"
    ORDER_FREETEXT = "order-freetext"
    COPIES = "copies"
    """What messages, calls, agents and files hold besides."""
    MENTIONS = "mentions"
    """Where the shop's people wrote an address of the customer's."""
    CUSTOMER_ROWS = "customer-rows"


class PendingStep(StrEnum):
    """What waits for an operator's word (rules/shops#erasure)."""

    IDENTITY_HASHES = "commerce-identity-hashes"
    HISTORY = "commerce-history"
    STORE_RECORD = "store-record"


LEGS: Final = {
    ComplianceTopic.SHOP_REDACT: (
        Leg.CREDENTIALS,
        Leg.VECTORS,
        Leg.WEBHOOK_ARCHIVE,
        Leg.ORDER_FREETEXT,
        Leg.COPIES,
    ),
    # What agents did to a customer's orders is found by these, so before they forget whose they are.
    ComplianceTopic.CUSTOMER_REDACT: (
        Leg.COPIES,
        Leg.MENTIONS,
        Leg.CUSTOMER_ROWS,
        Leg.WEBHOOK_ARCHIVE,
    ),
    ComplianceTopic.DATA_REQUEST: (Leg.ANSWER,),
}
"""In the order in which they are done: the actor refuses what is written before anything is swept."""

DUTY: Final = "Proof that a duty was met; it says of a person nothing but pseudonyms."


@stored(
    "compliance_requests",
    key=("id",),
    belongs=(
        Belongs(to=RowOwner.STORE, by="stores @> ARRAY[$1::text]", stays=DUTY),
        Belongs(to=RowOwner.USER, by="(handled_by = $1 OR asked_by = $1)", stays=ID_ALONE),
    ),
    export="complianceRequests",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class ComplianceRequest:
    """A request, and how far it is: `completed_at` is the machine's word, `handled_at` an operator's.

    `asked_by` is the user who asked for the merchant. `email_hash` is a pseudonym of the shop's, for a request may span several stores; each of those
    kept its rows under one of `shop_keys`. `asked_steps` are those
    pending ones that an operator has said to carry out.
    """

    id: str
    topic: ComplianceTopic
    shop_domain: str
    delivery_id: str
    body_digest: Annotated[str, Sealed]
    email_hash: Annotated[str | None, Personal.PSEUDONYM]
    stores: tuple[str, ...]
    shop_keys: tuple[str, ...]
    received_at: datetime
    pending_steps: tuple[str, ...]
    asked_steps: tuple[str, ...] = ()
    completed_at: datetime | None = None
    handled_at: datetime | None = None
    handled_by: Annotated[str | None, Personal.USER] = None
    source: RequestSource = RequestSource.PLATFORM
    asked_by: Annotated[str | None, Personal.USER] = None


@stored(
    "compliance_receipts",
    key=("request_id", "store_id", "leg"),
    belongs=Belongs(to=RowOwner.STORE, stays=DUTY),
    export="complianceReceipts",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What one leg or step of a request found of a store, and what it left.

    `query_digest` is the sha256 of the queries that it was found by; None where an earlier release did it.
    """

    request_id: str
    store_id: str
    leg: str
    rows_before: int
    rows_after: int
    at: datetime
    query_digest: str | None = None


@stored(
    "customer_redactions",
    key=("request_id", "store_id", "subject_key"),
    belongs=(
        Belongs(to=RowOwner.SHOP, stays=DUTY),
        Belongs(to=RowOwner.BUYER, by="email_hash", stays=DUTY),
    ),
    export="customerRedactions",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerRedaction:
    """Whom a request is about, as one shop of one store knows them; `store_id` is that shop's key."""

    request_id: str
    store_id: str
    subject_key: Annotated[str, Personal.PSEUDONYM]
    email_hash: Annotated[str, Personal.PSEUDONYM]
    redacted_at: datetime | None = None
