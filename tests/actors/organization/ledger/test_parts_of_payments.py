"""What a payment remembers of its grants is read whichever release wrote it down."""

import json
from dataclasses import astuple

import pytest

from tests.actors.organization.books import AT, days
from tolsey.actors.organization.ledger import parts
from tolsey.actors.organization.ledger.parts import COUNTED, GrantPart
from tolsey.storage.records.money.credits import CreditedPayment

ENDS = AT + days(30)


@pytest.mark.parametrize("counted", range(len(COUNTED) + 1))
def test_a_grant_that_an_older_release_wrote_down_counts_nothing_of_what_it_did_not_know(
    counted: int,
) -> None:
    known = dict(zip(COUNTED[:counted], (7, 5, 3, 2), strict=False))
    written = GrantPart(lot_id="lot_1", amount=9, granted_at=AT, expires_at=ENDS, **known)
    payment = CreditedPayment(
        organization_id="org_1",
        payment_ref="pi_1",
        kind="purchase",
        granted=9,
        granted_at=AT,
        expires_at=ENDS,
        credits=9,
        total=1,
        refunded=0,
        disputes="[]",
        refund_removed=0,
        dispute_removed=0,
        parts=json.dumps([astuple(written)[: 4 + counted]], default=str),
    )
    assert parts.of_payment(payment) == [written]
