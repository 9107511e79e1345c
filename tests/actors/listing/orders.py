"""Orders for the tests of what revenue is."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from tolsey.storage.records.selling.revenue import PulledLine, PulledOrder, PulledTransaction

START = datetime(2026, 3, 1, tzinfo=UTC)
END = START + timedelta(days=30)
MIDDLE = START + timedelta(days=10)


def line(price: str, quantity: int = 1, current: int | None = None, **more: Any) -> PulledLine:
    return PulledLine(Decimal(price), quantity, quantity if current is None else current, **more)


def paid(
    amount: str,
    *,
    kind: str = "SALE",
    status: str = "SUCCESS",
    test: bool = False,
    manual: bool = False,
) -> PulledTransaction:
    return PulledTransaction(kind, status, test, manual, Decimal(amount))


def order(*lines: PulledLine, **changed: Any) -> PulledOrder:
    total = sum((each.after_discounts_before_taxes for each in lines), Decimal(0))
    values: dict[str, Any] = {
        "order_id": "1",
        "processed_at": MIDDLE,
        "created_at": MIDDLE,
        "currency": "USD",
        "test": False,
        "cancelled_at": None,
        "source_name": "web",
        "total": total,
        "current_total": None,
        "refunded": Decimal(0),
        "lines": lines,
        "transactions": (paid(str(total)),),
    }
    return PulledOrder(**{**values, **changed})
