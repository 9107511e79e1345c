"""What a person's payout account lets them do, for the routes that ask (rules/payments#payout-accounts)."""

from typing import Any

import structlog

from tolsey.actors.processor import ProcessorError
from tolsey.actors.refusals import Forbidden, MissingCredential
from tolsey.http.answers.market.selling import SellerAccountAnswer
from tolsey.http.web import policies
from tolsey.http.web.access import caller
from tolsey.http.web.context import service
from tolsey.storage.money import payouts
from tolsey.storage.records.money.payouts import PayoutAccount, PayoutState

ACCOUNT_PATH = "/api/payouts/account"
PAYOUT_ACCOUNT = "payout_account"
"""What is missing before there is an account that anything could be missing of."""

log = structlog.get_logger()


class AccountRequired(Forbidden):
    """Only who can be paid may do this; `begin` is where a payout account is made."""

    code = "payout_account_required"

    def __init__(self, detail: str, **besides: Any) -> None:
        super().__init__(detail, begin=service().settings.base_url + ACCOUNT_PATH, **besides)


async def own_account() -> PayoutAccount | None:
    """Read the caller's account. One that is not verified is asked for at the processor.

    Its event may be on its way while its owner, back from the form, is already here.
    """
    running, user_id = service(), caller().user_id
    kept = await payouts.find(running.database, user_id)
    if kept is None or kept.is_verified:
        return kept
    verdict = await running.limits.admit((policies.PAYOUT_LOOKS,), f"user:{user_id}")
    if not verdict.allowed:
        return kept
    try:
        facts = await running.payments.payout_account(kept.account_id)
    except (ProcessorError, MissingCredential) as error:
        log.info("payouts.not_refreshed", account=kept.account_id, error=type(error).__name__)
        return kept
    return await payouts.refreshed(running.database, facts)


async def require_verified_account() -> None:
    """Refuse a caller whom the service cannot pay."""
    account = await own_account()
    if account is not None and account.is_verified:
        return
    if service().settings.payments_secret_key is None:
        raise MissingCredential("PAYMENTS_SECRET_KEY")
    raise AccountRequired(
        "This action requires a verified payout account. Connect one in your payout settings."
    )


async def require_seller_account(organization_id: str) -> None:
    """Refuse an organization that cannot be paid before its first listing is shown.

    Without a payment processor there are no payouts, so nothing is required.
    """
    found = await seller_account(organization_id)
    if not found.ready:
        raise AccountRequired(
            "Your organization's first listing requires a verified payout account. Have an"
            " owner or admin connect one.",
            missing=found.missing,
        )


async def seller_account(organization_id: str) -> SellerAccountAnswer:
    """Say whether an organization can be paid, as the processor sees it, and what it still wants."""
    running = service()
    required = running.settings.payments_secret_key is not None
    ready = not required or await payouts.may_sell(running.database, organization_id)
    if not ready:
        await own_account()
        ready = await payouts.may_sell(running.database, organization_id)
    account = await payouts.account_of_sellers(running.database, organization_id)
    missing = [] if account is None else [*account.past_due, *account.currently_due]
    return SellerAccountAnswer(
        organization_id=organization_id,
        required=required,
        ready=ready,
        state=(PayoutState.NONE if account is None else account.state).value,
        missing=list(dict.fromkeys(missing)) if account is not None else [PAYOUT_ACCOUNT],
        disabled_reason=account.disabled_reason if account is not None else None,
        begin=running.settings.base_url + ACCOUNT_PATH,
    )
