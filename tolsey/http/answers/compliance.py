"""Duties towards shops and their customers, as operators and agents see them."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Self

from tolsey.http.answers.base import ApiAnswer, Timestamp
from tolsey.storage.commerce import identities
from tolsey.storage.commerce.compliance import OVERDUE_AFTER
from tolsey.storage.records.commerce.compliance import ComplianceRequest, Receipt
from tolsey.storage.records.commerce.shops import ShopKey


class ReceiptAnswer(ApiAnswer):
    """What one leg of a request found of a store, and what it left."""

    store_id: str
    leg: str
    rows_before: int
    rows_after: int
    at: Timestamp


class ComplianceRequestAnswer(ApiAnswer):
    """A request of the platform: whom it is about, what was done, and what waits for an operator."""

    id: str
    topic: str
    shop_domain: str
    stores: list[str]
    received_at: Timestamp
    due_at: Timestamp
    overdue: bool
    completed_at: Timestamp | None
    handled_at: Timestamp | None
    pending_steps: list[str]
    asked_steps: list[str]
    legs: list[ReceiptAnswer]

    @classmethod
    def of(cls, request: ComplianceRequest, receipts: Iterable[Receipt], at: datetime) -> Self:
        """Show a request at a moment, with those of the receipts that are its own."""
        due_at = request.received_at + OVERDUE_AFTER
        return cls.read(
            request,
            due_at=due_at,
            overdue=request.handled_at is None and at > due_at,
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
