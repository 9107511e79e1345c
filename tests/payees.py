"""People who are paid out to, as the processor tells of them."""

from typing import Any

from tolsey.actors.organization.billing.payment_events.payouts import AccountFacts

DUE = ("external_account", "individual.id_number")


def account(account_id: str = "acct_1", **said: Any) -> AccountFacts:
    """An account whose owner has said nothing yet, but for what is given."""
    given: dict[str, Any] = {
        "user_id": None,
        "has_submitted_details": False,
        "can_charge": False,
        "can_be_paid_out": False,
        "disabled_reason": "requirements.past_due",
        "currently_due": DUE,
        "past_due": DUE,
        "eventually_due": DUE,
        "pending_verification": (),
        **said,
    }
    return AccountFacts(account_id=account_id, **given)


def verified(account_id: str = "acct_1", **said: Any) -> AccountFacts:
    """An account with which the processor is content, but for what is given."""
    content: dict[str, Any] = {
        "has_submitted_details": True,
        "can_charge": True,
        "can_be_paid_out": True,
        "disabled_reason": None,
        **dict.fromkeys(("currently_due", "past_due", "eventually_due"), ()),
    }
    return account(account_id, **{**content, **said})
