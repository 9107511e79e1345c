"""The billing page, and its forms: each does what the API's route of the same name does."""

import re
from collections.abc import Awaitable
from typing import Final

from quart import Blueprint, Response, request

from tolsey.actors.organization import plans
from tolsey.actors.organization.billing import changes
from tolsey.actors.organization.billing.messages import ReadSubscription, list_priced_offers
from tolsey.actors.organization.ledger.messages import ReadCredits
from tolsey.actors.organization.messages import organization
from tolsey.actors.organization.plans import Change
from tolsey.actors.processor import ProcessorError, refusal_of
from tolsey.actors.refusals import Refusal
from tolsey.http.answers.money.credits import (
    CreditsAnswer,
    GrantAnswer,
    LedgerEntryAnswer,
    spent_after,
)
from tolsey.http.billing import acts as billing
from tolsey.http.billing.hosted import hosted_pages
from tolsey.http.billing.views import (
    FEEDBACK,
    LONGEST_COMMENT,
    PATH,
    Arrival,
    BillingAccount,
    BillingPage,
    CancellationPage,
    DowngradePage,
    KeepPage,
    UpgradePage,
    address,
)
from tolsey.http.layout import forms
from tolsey.http.layout.amounts import in_minor
from tolsey.http.layout.answers import answer_with_pages, sent_on, sentence, shown
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.forms import Filled
from tolsey.http.operations import of_caller
from tolsey.http.web.access import (
    Role,
    first_organization,
    member_of,
    organization_of,
    page,
)
from tolsey.http.web.context import ask, now, service
from tolsey.http.web.paging import key_in
from tolsey.storage.money import credits
from tolsey.storage.records.runtime.operations import Operation

SHOWN_ENTRIES: Final = 30
MOST_ORGANIZATIONS: Final = 200
MOST_LOOKS: Final = 10
"""How often the page looks for a payment by itself."""

routes = Blueprint("billing_pages", __name__)
answer_with_pages(routes)


@routes.get(PATH)
@page
async def show_billing() -> Response:
    """Show what an organization pays for; without one named, the caller's first."""
    wanted = request.args.get("organizationId")
    if wanted is None:
        came_from = {name: request.args[name] for name in ("from",) if name in request.args}
        return sent_on(address(await first_organization(), **came_from))
    account = await _account(wanted, cursor=request.args.get("cursor", ""))
    arrival = _arrival(account, request.args.get("from", ""))
    refused = ""
    if "operation" in request.args:
        operation = await of_caller(request.args["operation"])
        if operation.detail is not None:
            arrival, refused = None, _(operation.detail)
        elif operation.state == "running":
            arrival = "waiting"
    look_again = _again(account) if arrival in {"confirming", "credits", "waiting"} else None
    return _shown(
        BillingPage(account=account, arrival=arrival, look_again=look_again, refused=refused)
    )


@routes.post(f"{PATH}/checkout")
@page
async def check_out() -> Response:
    """Send the buyer of a first plan on to the processor's page."""
    sent = await forms.sent()
    id = sent.get("organizationId", "")
    act = billing.check_out(id, sent.get("plan", ""), sent.get("cadence", ""))
    return await _acted(id, act)


@routes.get(f"{PATH}/change")
@page
async def ask_change() -> Response:
    """Say what choosing a plan would do, and ask whether it shall."""
    account = await _account(request.args.get("organizationId", ""), at_least="admin")
    plan, cadence = request.args.get("plan", ""), request.args.get("cadence", "")
    held = account.held
    current = changes.current_offer(held, list_priced_offers(service().settings.payment_prices))
    if (
        current
        and account.changes_later
        and (plan, cadence) == (current.plan.code, current.cadence)
    ):
        return shown(KeepPage(account=account, wanted=current))
    try:
        chosen = plans.choose(
            plan, cadence, current=current, created_at=held.created_at, at=account.at
        )
        if not held.is_subscribed:  # it is bought, not changed
            return sent_on(address(account.organization.id))
        offer, kind = chosen
        if kind is Change.DOWNGRADE:
            return shown(DowngradePage(account=account, wanted=offer))
        charge = await billing.preview(account.organization.id, offer)
    except (Refusal, ProcessorError) as error:
        return _refused(account, _refusal(error))
    return shown(UpgradePage(account=account, wanted=offer, charge=charge))


@routes.post(f"{PATH}/change")
@page
async def change() -> Response:
    """Change the plan, and go back to where it shows."""
    sent = await forms.sent()
    id = sent.get("organizationId", "")
    act = billing.change(id, sent.get("plan", ""), sent.get("cadence", ""))
    return await _acted(id, act)


@routes.get(f"{PATH}/cancel")
@page
async def ask_cancellation() -> Response:
    """Say what a cancellation would do, and ask whether it shall."""
    account = await _account(request.args.get("organizationId", ""), at_least="admin")
    if not account.held.is_subscribed:
        return sent_on(address(account.organization.id))
    return shown(CancellationPage(account=account))


@routes.post(f"{PATH}/cancel")
@page
async def cancel() -> Response:
    """Let the plan end with its period, and go back to where it shows."""
    sent = await forms.sent()
    id, feedback = sent.get("organizationId", ""), sent.get("feedback") or None
    if feedback not in {None, *FEEDBACK}:
        feedback = "other"
    comment = sent.get("comment", "").strip()[:LONGEST_COMMENT] or None
    return await _acted(id, billing.cancel(id, feedback=feedback, comment=comment))


@routes.post(f"{PATH}/portal")
@page
async def visit_portal() -> Response:
    """Send someone on to the processor's portal: invoices, card, tax id."""
    id = (await forms.sent()).get("organizationId", "")
    return await _acted(id, billing.visit_portal(id))


@routes.post(f"{PATH}/credits")
@page
async def buy_credits() -> Response:
    """Send the buyer of credits on to the processor's page."""
    sent = await forms.sent()
    id, amount = sent.get("organizationId", ""), sent.get("amount", "")
    filled = Filled({"amount": amount})
    cents = in_minor(amount.strip().strip("$"), plans.CURRENCY)
    if cents is None:
        wrong = filled.wrong("amount", _("Enter an amount in dollars, such as 50 or 49.99."))
        return _shown(BillingPage(account=await _account(id), filled=wrong), 422)
    try:
        return sent_on(await billing.buy_credits(id, cents))
    except (Refusal, ProcessorError) as error:
        refusal = _refusal(error)
        if refusal.code != "amount_out_of_range":
            return _refused(await _account(id), refusal, filled)
        wrong = filled.wrong("amount", sentence(refusal))
        return _shown(BillingPage(account=await _account(id), filled=wrong), refusal=refusal)


async def _acted(organization_id: str, act: Awaitable[str | Operation]) -> Response:
    """Do what was asked and go on: to the page it answers with, or back to what it changes."""
    try:
        done = await act
    except (Refusal, ProcessorError) as error:
        return _refused(await _account(organization_id), _refusal(error))
    if isinstance(done, str):
        return sent_on(done)
    waits = {"operation": done.id} if done.state == "running" else {}
    return sent_on(address(organization_id, **{"from": "change"}, **waits))


def _refusal(error: Refusal | ProcessorError) -> Refusal:
    return error if isinstance(error, Refusal) else refusal_of(error)


def _refused(account: BillingAccount, refusal: Refusal, filled: Filled | None = None) -> Response:
    """Show the page again, with the reason why what was asked was not done."""
    wanted = BillingPage(account=account, filled=filled or Filled(), refused=sentence(refusal))
    return _shown(wanted, refusal=refusal)


async def _account(
    organization_id: str, at_least: Role = "member", cursor: str = ""
) -> BillingAccount:
    await member_of(organization_id, at_least)
    after = spent_after(key_in(cursor))
    database, at, to = service().database, now(), organization(organization_id)
    found = await ask(to, ReadCredits(at, after))
    entries = await credits.movements(database, organization_id, SHOWN_ENTRIES)
    return BillingAccount(
        organization=await organization_of(organization_id),
        held=await ask(to, ReadSubscription(at)),
        credits=CreditsAnswer.of(found),
        first=GrantAnswer.read(found.first) if found.first else None,
        entries=[LedgerEntryAnswer.of(pair) for pair in entries],
        at=at,
    )


def _arrival(account: BillingAccount, came_from: str) -> Arrival | None:
    match came_from:
        case "checkout":
            return "active" if account.held.is_subscribed else "confirming"
        case "change":
            return "done"
        case "credits":
            return "credited" if _is_credited(account) else "credits"
        case "sponsor":
            return "sponsor"
        case _:
            return None


def _is_credited(account: BillingAccount) -> bool:
    """Whether credits were booked since the purchase that the reader comes back from was begun."""
    mark = request.args.get("after", "")
    if re.fullmatch(r"[0-9]{1,18}", mark) is None:
        return False
    return any(one.kind == "purchase" and one.seq > int(mark) for one in account.entries)


def _again(account: BillingAccount) -> str | None:
    looks = request.args.get("looks", "0")
    count = int(looks) if looks.isascii() and looks.isdecimal() and len(looks) < 3 else MOST_LOOKS  # noqa: PLR2004 - two digits are many looks
    if count >= MOST_LOOKS:
        return None
    kept = {
        name: request.args[name] for name in ("from", "operation", "after") if name in request.args
    }
    return address(account.organization.id, **kept, looks=str(count + 1))


def _shown(wanted: BillingPage, status: int = 200, *, refusal: Refusal | None = None) -> Response:
    return shown(wanted, status, refusal=refusal, form_targets=hosted_pages())
