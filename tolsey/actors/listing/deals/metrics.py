"""Verified figures in the documents of a deal: frozen by the letter of intent, compared by the purchase agreement."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

Figures = Mapping[str, Any]

FROZEN_BY: Final = "LOI"
COMPARED_BY: Final = "APA"
TOLERATED_PERCENT: Final = 10


@dataclass(frozen=True, slots=True)
class RevenueMove:
    """How far revenue went since a letter of intent: `percent` is None where two amounts cannot be compared."""

    percent: str | None
    is_large: bool


def compared(agreed: Figures, now: Figures) -> RevenueMove:
    """Compare verified revenue with what a letter of intent said of it."""
    before, after = agreed.get("revenue30d"), now.get("revenue30d")
    if before is None and after is None:
        return RevenueMove(None, is_large=False)
    # What is proven no more, or in another currency, is as far from the letter as can be.
    if before is None or after is None or agreed.get("currency") != now.get("currency"):
        return RevenueMove(None, is_large=True)
    if before == 0:
        return RevenueMove(None, is_large=after != 0)
    percent = Decimal(100) * (after - before) / abs(before)
    # More than 10% either way has to be acknowledged by both (rules/marketplace#figures).
    is_large = abs(percent) > TOLERATED_PERCENT
    return RevenueMove(str(percent.quantize(Decimal("0.1"), rounding=ROUND_HALF_UP)), is_large)
