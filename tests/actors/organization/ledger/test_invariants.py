"""Credits that cannot be are never made: the turn that would make them fails."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tolsey.actors.organization.ledger.credits import BrokenBooks, Credits, Hold
from tolsey.actors.organization.ledger.entries import Draft
from tolsey.actors.organization.ledger.open_lots import OpenLots
from tolsey.actors.organization.state import OrganizationState
from tolsey.storage.records.money.credits import CreditLot

AT = datetime(2026, 3, 1, tzinfo=UTC)
LOT = CreditLot(
    organization_id="org_1",
    id="a",
    kind="bonus",
    reference=None,
    amount=10,
    remaining=7,
    pinned=3,
    granted_at=AT,
    expires_at=AT + timedelta(days=30),
    seq=1,
)
HOLD = Hold(id="h", lines=(("a", 3),), amount=3, used=0, lease_until=AT)
BOOKS = Credits(1, free=4, held=3, lots=OpenLots([LOT]), holds={"h": HOLD})


@pytest.mark.parametrize("wrong", [{"free": -1}, {"held": -1}, {"debt": -1}])
def test_nothing_of_the_books_is_below_zero(wrong: dict[str, int]) -> None:
    with pytest.raises(BrokenBooks, match="-1"):
        replace(BOOKS, **wrong)  # type: ignore[arg-type]  # one of its numbers


@pytest.mark.parametrize(("remaining", "pinned"), [(7, 8), (7, -1), (11, 3)])
def test_a_draft_leaves_no_lot_that_cannot_be(remaining: int, pinned: int) -> None:
    draft = Draft(OrganizationState("org_1", credits=BOOKS), AT, [])
    with pytest.raises(BrokenBooks, match=f"lot a: {pinned} of {remaining} of 10"):
        draft.refill(replace(LOT, remaining=0, pinned=pinned), remaining, "promo")
