"""Duties towards shops and their customers, as operators and agents see them."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field

from tolsey.http.answers.base import ApiAnswer, Timestamp
from tolsey.storage.commerce import identities
from tolsey.storage.commerce.compliance import OVERDUE_AFTER
from tolsey.storage.records.commerce.compliance import ComplianceRequest, Receipt
from tolsey.storage.records.commerce.shops import ShopKey


class ObligationClock(ApiAnswer):
    """When an obligation is due, and how it stands until then."""

    received_at: Timestamp
    due_at: Timestamp
    overdue: bool
    clock: Annotated[
        Literal["stopped", "running", "warning", "urgent", "overdue"],
        Field(description="warning from 21 days on, urgent from 28, overdue after 30."),
    ]

    @classmethod
    def clock_of(cls, request: ComplianceRequest, at: datetime) -> dict[str, Any]:
        """Say how it stands at a moment with what a request obliges to."""
        due_at = request.received_at + OVERDUE_AFTER
        state = "stopped"
        if request.handled_at is None:
            # GDPR Art. 12(3) says a month, which may have 28 days (rules/shops#clocks).
            reached = (name for after, name in CLOCK if at > request.received_at + after)
            state = next(reached, "running")
        return {
            "received_at": request.received_at,
            "due_at": due_at,
            "overdue": state == "overdue",
            "clock": state,
        }


CLOCK: Final = (
    (OVERDUE_AFTER, "overdue"),
    (timedelta(days=28), "urgent"),
    (timedelta(days=21), "warning"),
)
"""What the clock of an obligation says once it has run for so long."""


class ReceiptAnswer(ApiAnswer):
    """What one leg of a request found of a store, and what it left."""

    store_id: str
    leg: str
    rows_before: int
    rows_after: int
    at: Timestamp
    query_digest: str | None


class ComplianceRequestAnswer(ObligationClock):
    """A request to tell or to forget: who asked, whom it is about, what was done, and what waits for an operator."""

    id: str
    topic: str
    source: str
    shop_domain: str
    stores: list[str]
    completed_at: Timestamp | None
    handled_at: Timestamp | None
    pending_steps: list[str]
    asked_steps: list[str]
    legs: list[ReceiptAnswer]

    @classmethod
    def of(cls, request: ComplianceRequest, receipts: Iterable[Receipt], at: datetime) -> Self:
        """Show a request at a moment, with those of the receipts that are its own."""
        return cls.read(
            request,
            **cls.clock_of(request, at),
            legs=[ReceiptAnswer.read(one) for one in receipts if one.request_id == request.id],
        )


class IdentitiesAnswer(ApiAnswer):
    """How many rows still name buyers by the older global digest, by the column they stand in."""

    complete: bool
    rows: int
    shops: int
    columns: dict[str, int]

    @classmethod
    def of(cls, waiting: Mapping[ShopKey, Mapping[str, int]]) -> Self:
        """Add up what is left of each shop."""
        columns = identities.by_column(waiting)
        return cls(
            complete=not waiting,
            rows=sum(columns.values()),
            shops=len(waiting),
            columns=columns,
        )


class RehashedAnswer(IdentitiesAnswer):
    """What a request moved, and what is left after it."""

    rehashed: int
    unopened: int
    """Shops whose salt no key at hand opens: set `ENCRYPTION_KEYS` as it was."""
