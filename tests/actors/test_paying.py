"""What has to be known of a payee before they are paid (rules/payments#paying-out)."""

import pytest

from tolsey.actors.paying import PayeeFacts, PayoutKind, missing

NOBODY = PayeeFacts(is_verified=False, paid_this_year_cents=0, has_tax_form=False)
KNOWN = PayeeFacts(is_verified=True, paid_this_year_cents=0, has_tax_form=False)


@pytest.mark.parametrize(
    ("kind", "cents", "payee", "wanted"),
    [
        (PayoutKind.BOUNTY, 200_00, NOBODY, ()),
        (PayoutKind.BOUNTY, 200_01, NOBODY, ("payout_account",)),
        (PayoutKind.BOUNTY, 5_000_00, KNOWN, ()),
        (PayoutKind.AFFILIATE, 1, NOBODY, ("payout_account",)),
        (PayoutKind.AFFILIATE, 600_00, KNOWN, ()),
        (PayoutKind.AFFILIATE, 600_01, KNOWN, ("tax_form",)),
        (PayoutKind.AFFILIATE, 600_01, NOBODY, ("payout_account", "tax_form")),
    ],
)
def test_a_payee_is_asked_for_what_the_amount_wants(
    kind: PayoutKind, cents: int, payee: PayeeFacts, wanted: tuple[str, ...]
) -> None:
    assert missing(kind, cents, payee) == wanted


def test_what_was_paid_this_year_counts_and_a_filed_form_ends_the_question() -> None:
    paid = PayeeFacts(is_verified=True, paid_this_year_cents=500_00, has_tax_form=False)
    assert missing(PayoutKind.AFFILIATE, 100_00, paid) == ()
    assert missing(PayoutKind.AFFILIATE, 100_01, paid) == ("tax_form",)
    filed = PayeeFacts(is_verified=True, paid_this_year_cents=500_00, has_tax_form=True)
    assert missing(PayoutKind.AFFILIATE, 100_01, filed) == ()
