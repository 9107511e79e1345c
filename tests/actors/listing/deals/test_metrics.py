"""Verified revenue against what a letter of intent said of it."""

import pytest

from tolsey.actors.listing.deals.metrics import compared


def usd(revenue: int | None, currency: str = "USD") -> dict[str, object]:
    return {"revenue30d": revenue, "currency": currency}


@pytest.mark.parametrize(
    ("now", "percent", "is_large"),
    [
        (usd(1_100_000), "10.0", False),
        (usd(1_100_001), "10.0", True),
        (usd(900_000), "-10.0", False),
        (usd(899_999), "-10.0", True),
        (usd(0), "-100.0", True),
        (usd(None), None, True),
        (usd(1_000_000, "EUR"), None, True),
    ],
)
def test_more_than_a_tenth_either_way_is_a_large_move(
    now: dict[str, object], percent: str | None, is_large: bool
) -> None:
    found = compared(usd(1_000_000), now)
    assert (found.percent, found.is_large) == (percent, is_large)


def test_what_was_never_proven_does_not_move() -> None:
    assert not compared(usd(None), usd(None)).is_large
    assert compared(usd(None), usd(5)).is_large
    assert not compared(usd(0), usd(0)).is_large
    assert compared(usd(0), usd(1)).is_large
