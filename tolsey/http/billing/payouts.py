"""Accounts that sellers and affiliates are paid out to, kept at the payment processor."""

from datetime import UTC
from http import HTTPStatus
from typing import Annotated, Literal, cast

from pydantic import Field, StringConstraints
from quart import Blueprint, Response, redirect
from quart_schema import tag_blueprint

from tolsey.actors import paying
from tolsey.actors.refusals import Conflict, NotFound
from tolsey.http.answers.base import Created, Media
from tolsey.http.answers.money.credits import MoneyAnswer, UrlAnswer
from tolsey.http.answers.money.payouts import (
    NoPayoutAccountAnswer,
    OnboardingAnswer,
    PayoutAccountAnswer,
    RecordedPayoutAnswer,
)
from tolsey.http.billing.payout_accounts import ACCOUNT_PATH, AccountRequired, own_account
from tolsey.http.web import limits, policies
from tolsey.http.web.access import administrator, caller, session
from tolsey.http.web.api_model import ApiModel, Identifier, Whole, Why
from tolsey.http.web.context import new_id, now, service
from tolsey.http.web.repeats.idempotency import idempotent
from tolsey.storage.money import payouts
from tolsey.storage.money.payouts import PaidOut
from tolsey.storage.records.money.payouts import PayoutAccount, PayoutState

RETURN_PATH = "/?from=payouts"
LARGEST_CENTS = 10_000_000

routes = Blueprint("payouts", __name__, url_prefix="/api/payouts")
tag_blueprint(routes, ["Payouts"])
operators = Blueprint("admin_payouts", __name__, url_prefix="/api/admin")
tag_blueprint(operators, ["Operators"])


class TaxFormRequired(Conflict):
    """Somebody is paid more than a year allows without a tax form."""

    code = "tax_form_required"


class PaidAmount(ApiModel):
    """What is paid, in cents."""

    amount: Annotated[Whole, Field(gt=0, le=LARGEST_CENTS)]
    currency: Literal["USD"]


class NewPayout(ApiModel):
    """Who is paid how much for what; `taxForm` says where their tax form is filed, and is kept for later ones."""

    kind: paying.PayoutKind
    payee: Identifier
    amount: PaidAmount
    reason: Why
    tax_form: (
        Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
        | None
    ) = None


@operators.post("/payouts")
@administrator
@idempotent
async def record_payout(data: NewPayout) -> tuple[RecordedPayoutAnswer, Created]:
    """Write down a payout that is made at the processor, if its payee is known well enough to be paid."""
    running, at = service(), now()
    account = await payouts.find(running.database, data.payee)
    wanted = PaidOut(
        id=new_id("payout"),
        kind=data.kind,
        payee=data.payee,
        cents=data.amount.amount,
        year=at.astimezone(UTC).year,
        tax_form=data.tax_form,
        reason=data.reason,
        by=caller().user_id,
    )

    def allow(paid_cents: int, has_tax_form: bool) -> None:
        facts = paying.PayeeFacts(
            is_verified=account is not None and account.is_verified,
            paid_this_year_cents=paid_cents,
            has_tax_form=has_tax_form or data.tax_form is not None,
        )
        missing = list(paying.missing(data.kind, wanted.cents, facts))
        if "payout_account" in missing:
            raise AccountRequired(
                "The payee has no verified payout account. Ask the payee to connect one.",
                missing=missing,
            )
        if missing:
            raise TaxFormRequired(
                "The payee's tax form is missing. Send `taxForm` with the reference of the"
                " filed form.",
                missing=missing,
            )

    paid_cents = await payouts.record_payout(running.database, wanted, allow)
    if paid_cents is None:
        raise NotFound("This payee doesn't exist. Check the id in the list of payees.")
    return RecordedPayoutAnswer(
        id=wanted.id,
        kind=data.kind.value,
        payee=data.payee,
        amount=MoneyAnswer(amount=wanted.cents, currency="USD"),
        paid_this_year=MoneyAnswer(amount=paid_cents, currency="USD"),
        reason=data.reason,
        recorded_at=at,
    ), 201


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
            "Your payout account isn't set up yet. Complete its onboarding at Stripe first.",
            code="onboarding_unfinished",
            begin=service().settings.base_url + ACCOUNT_PATH,
        )
    url = await service().payments.dashboard_link(account.account_id)
    await payouts.visited(service().database, account, "payout_account.dashboard_opened")
    return UrlAnswer(url=url)


async def _existing() -> PayoutAccount:
    account = await own_account()
    if account is None:
        raise NotFound("You have no payout account. Connect one in your payout settings.")
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
