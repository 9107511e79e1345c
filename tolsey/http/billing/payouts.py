"""Accounts that sellers and affiliates are paid out to, kept at the payment processor."""

from http import HTTPStatus
from typing import Annotated, cast

from quart import Blueprint, Response, redirect
from quart_schema import tag_blueprint

from tolsey.actors.refusals import Conflict, NotFound
from tolsey.http.answers.base import Created, Media
from tolsey.http.answers.money import UrlAnswer
from tolsey.http.answers.payouts import (
    NoPayoutAccountAnswer,
    OnboardingAnswer,
    PayoutAccountAnswer,
)
from tolsey.http.billing.payout_accounts import ACCOUNT_PATH, own_account
from tolsey.http.web import limits, policies
from tolsey.http.web.access import caller, session
from tolsey.http.web.context import now, service
from tolsey.storage.money import payouts
from tolsey.storage.records.money.payouts import PayoutAccount, PayoutState

RETURN_PATH = "/?from=payouts"

routes = Blueprint("payouts", __name__, url_prefix="/api/payouts")
tag_blueprint(routes, ["Payouts"])


@routes.post("/account")
@session
@limits.limited(policies.PAYOUT_LINKS)
async def open_account() -> tuple[OnboardingAnswer, Created]:
    """Make the caller's account, or find it, and a page on which they say who they are.

    The page's address is good for one visit within minutes, so a repeat gets another, and it is
    kept nowhere; the account stays the same.
    """
    account, url = await onboard()
    return OnboardingAnswer(url=url, account=await _shown(account)), 201


async def onboard() -> tuple[PayoutAccount, str]:
    """Make the caller's account, or find it, and the page on which they say who they are."""
    running, person = service(), caller()
    account = await payouts.find(running.database, person.user_id)
    if account is None:
        facts = await running.payments.open_payout_account(
            person.user_id, person.email, key=f"payout_account:{person.user_id}"
        )
        account = await payouts.opened(running.database, person.user_id, facts, now())
    return account, await _onboarding(account)


@routes.get("/account")
@session
async def get_account() -> PayoutAccountAnswer | NoPayoutAccountAnswer:
    """Show how far the caller's account is, and what the processor still wants."""
    account = await own_account()
    return (
        NoPayoutAccountAnswer(state=PayoutState.NONE) if account is None else await _shown(account)
    )


@routes.get("/account/onboarding")
@session
@limits.limited(policies.PAYOUT_LINKS)
async def continue_onboarding() -> Annotated[Response, Media(None, HTTPStatus.SEE_OTHER)]:
    """Send the browser to a fresh page, where the processor's own had grown old."""
    location = await _onboarding(await _existing())
    return cast("Response", redirect(location, HTTPStatus.SEE_OTHER))


@routes.post("/account/dashboard")
@session
@limits.limited(policies.PAYOUT_LINKS)
async def open_dashboard() -> UrlAnswer:
    """Make the one-time address of the account's own pages at the processor."""
    account = await _existing()
    if not account.has_submitted_details:
        raise Conflict(
            "Finish the onboarding of your payout account first.",
            code="onboarding_unfinished",
            begin=service().settings.base_url + ACCOUNT_PATH,
        )
    url = await service().payments.dashboard_link(account.account_id)
    await payouts.visited(service().database, account, "payout_account.dashboard_opened")
    return UrlAnswer(url=url)


async def _existing() -> PayoutAccount:
    account = await own_account()
    if account is None:
        raise NotFound("You have no payout account.")
    return account


async def _onboarding(account: PayoutAccount) -> str:
    running = service()
    base = running.settings.base_url
    url = await running.payments.onboarding_link(
        account.account_id, base + RETURN_PATH, f"{base}{ACCOUNT_PATH}/onboarding"
    )
    await payouts.visited(running.database, account, "payout_account.onboarding_opened")
    return url


async def _shown(account: PayoutAccount) -> PayoutAccountAnswer:
    failures = await payouts.failures(service().database, account.account_id)
    return PayoutAccountAnswer.of(account, failures)
