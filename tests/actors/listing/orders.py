"""Orders for the tests of what revenue is."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from tolsey.storage.records.selling.revenue import (
    PulledLine,
    PulledOrder,
    PulledRefund,
    PulledTransaction,
)

START = datetime(2026, 3, 1, tzinfo=UTC)
END = START + timedelta(days=30)
MIDDLE = START + timedelta(days=10)


def line(price: str, **more: Any) -> PulledLine:
    return PulledLine(Decimal(price), **more)


def paid(
    amount: str,
    *,
    kind: str = "SALE",
    status: str = "SUCCESS",
    test: bool = False,
    manual: bool = False,
    gateway: str | None = "shopify_payments",
    fees: bool | None = None,
) -> PulledTransaction:
    """A payment; the platform's own processor asks fees unless the test says otherwise."""
    asked = gateway == "shopify_payments" and not manual if fees is None else fees
    return PulledTransaction(
        kind=kind,
        status=status,
        test=test,
        manual_payment_gateway=manual,
        amount=Decimal(amount),
        gateway=gateway,
        has_fees=asked,
    )


def back(amount: str, *, status: str = "SUCCESS", **more: Any) -> PulledTransaction:
    """Money that goes back."""
    return paid(amount, kind="REFUND", status=status, **more)


def refund(
    paid_back: str, *, goods: str = "0", returned: str | None = None, at: datetime = MIDDLE
) -> PulledRefund:
    return PulledRefund(
        at=at,
        paid_back=Decimal(paid_back),
        goods=Decimal(goods),
        returned=Decimal(goods if returned is None else returned),
    )


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
        "has_checkout": True,
        "disputes": (),
        "total": total,
        "current_total": changed.get("total", total),
        **dict.fromkeys(("tax", "shipping", "tip", "duties", "additional_fees"), Decimal(0)),
        "duties_included": False,
        "lines": lines,
        "transactions": (paid(str(total)),),
    }
    return PulledOrder(**{**values, **changed})
