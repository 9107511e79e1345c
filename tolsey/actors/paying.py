"""What has to be known of a payee before they are paid (rules/payments#paying-out)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

BOUNTY_WITHOUT_ACCOUNT_CENTS: Final = 200_00
YEAR_WITHOUT_TAX_FORM_CENTS: Final = 600_00


class PayoutKind(StrEnum):
    """For what somebody is paid."""

    AFFILIATE = "affiliate"
    BOUNTY = "bounty"


@dataclass(frozen=True, slots=True, kw_only=True)
class PayeeFacts:
    """What is known of who is to be paid."""

    is_verified: bool
    """Whether they have a verified payout account."""
    paid_this_year_cents: int
    """What they were paid of this kind in the calendar year, in UTC."""
    has_tax_form: bool


def missing(kind: PayoutKind, cents: int, payee: PayeeFacts) -> tuple[str, ...]:
    """Name what is missing before this is paid: `payout_account`, `tax_form`."""
    found = []
    # Affiliates always, bounties above 200 USD (rules/payments#paying-out).
    wants_account = kind is PayoutKind.AFFILIATE or cents > BOUNTY_WITHOUT_ACCOUNT_CENTS
    if wants_account and not payee.is_verified:
        found.append("payout_account")
    # Affiliates above 600 USD a year, with this one (rules/payments#paying-out).
    of_year = payee.paid_this_year_cents + cents
    wants_form = kind is PayoutKind.AFFILIATE and of_year > YEAR_WITHOUT_TAX_FORM_CENTS
    if wants_form and not payee.has_tax_form:
        found.append("tax_form")
    return tuple(found)
