"""What a person does about what their organization pays for: the API and the pages both come here.

Who may is asked here, whatever the door. Every act is written down before the processor is asked for
money, and whatever is paid comes back as an event: nothing is granted here.
"""

from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlencode

from tolsey.actors.organization import plans
from tolsey.actors.organization.billing import changes
from tolsey.actors.organization.billing.messages import (
    BillingAct,
    CancelPlan,
    ChangePlan,
    ReadSubscription,
    RecordBillingAct,
    SubscriptionView,
    list_priced_offers,
)
from tolsey.actors.organization.messages import organization
from tolsey.actors.organization.plans import Offer
from tolsey.actors.processor import Addresses, Buyer, ChargePreview
from tolsey.actors.refusals import Conflict, MissingCredential, Unavailable, Unprocessable
from tolsey.http.operations import carried_out
from tolsey.http.web import limits, policies
from tolsey.http.web.access import caller, member_of
from tolsey.http.web.context import ask, new_id, now, service
from tolsey.storage import audit
from tolsey.storage.money import checkouts, credits
from tolsey.storage.records.runtime.operations import Operation

SMALLEST_PURCHASE_CENTS: Final = 500
LARGEST_PURCHASE_CENTS: Final = 500_000
ATTEMPTS: Final = 5
SESSION: Final = "&session={CHECKOUT_SESSION_ID}"
"""What the processor replaces by the page's own id when it sends the buyer back."""


def addresses(organization_id: str | None, source: str) -> Addresses:
    """Say where the processor's page leads back to."""
    base = f"{service().settings.base_url}/billing"
    whose = {"organizationId": organization_id} if organization_id else {}
    done, back = urlencode({**whose, "from": source}), urlencode(whose)
    return Addresses(f"{base}?{done}", f"{base}?{back}" if back else base)


async def standing(organization_id: str) -> SubscriptionView:
    """Read what an organization pays for; the caller is known to belong to it."""
    return await ask(organization(organization_id), ReadSubscription(now()))


async def change(organization_id: str, plan: str, cadence: str) -> Operation:
    """Change the plan: up at once and paid, down when the period ends; or take back what was to come."""
    await _admit(organization_id)
    asked = ChangePlan(
        operation_id=new_id("operation"),
        plan=plan,
        cadence=cadence,
        price_ids=service().settings.sold_prices,
        user_id=caller().user_id,
        at=now(),
        offers=list_priced_offers(service().settings.payment_prices),
    )
    return await carried_out(organization(organization_id), asked)


async def cancel(
    organization_id: str, *, feedback: str | None = None, comment: str | None = None
) -> Operation:
    """Let the subscription end with its period."""
    await _admit(organization_id)
    asked = CancelPlan(
        operation_id=new_id("operation"),
        price_ids=service().settings.sold_prices,
        user_id=caller().user_id,
        at=now(),
        feedback=feedback,
        comment=comment,
    )
    return await carried_out(organization(organization_id), asked)


async def preview(organization_id: str, offer: Offer) -> ChargePreview:
    """Ask the processor what changing to an offer at once would charge."""
    await _admit(organization_id)
    held = changes.subscribed(await standing(organization_id))
    price_id = plans.price_id(offer, service().settings.sold_prices)
    return await service().payments.preview_upgrade(held, price_id)


async def _admit(organization_id: str) -> None:
    await member_of(organization_id, at_least="admin")
    require_key()
    await limits.admit(policies.BILLING)


async def check_out(organization_id: str, plan: str, cadence: str) -> str:
    """Open the page on which a first plan is bought; 409 when there is a subscription to change."""
    await member_of(organization_id, at_least="admin")
    require_key()
    view = await standing(organization_id)
    if view.is_subscribed:
        raise _exists()
    contract = plans.held(view.plan, None) if view.plan == plans.CUSTOM.code else None
    offer, _ = plans.choose(plan, cadence, current=contract, created_at=view.created_at, at=now())
    price_id = plans.price_id(offer, service().settings.sold_prices)
    await limits.admit(policies.BILLING)
    nonce = new_id("checkout")
    await record(organization_id, "checkout.started", plan=plan, cadence=cadence)
    buyer = Buyer(organization_id, view.customer_id)
    to = addresses(organization_id, "checkout")
    to = replace(to, success_url=to.success_url + SESSION)
    page = await service().payments.subscription_checkout(
        buyer, price_id, plan, cadence, to, key=f"checkout:{organization_id}:{nonce}"
    )
    await _close_others(organization_id, page.id)
    return page.url


async def _close_others(organization_id: str, session_id: str) -> None:
    """Leave one open page, so that no two are paid; 409 when the one before has been."""
    running = service()
    for _ in range(ATTEMPTS):
        before = await checkouts.last(running.database, organization_id)
        if before not in {None, session_id}:
            key = f"close:{before}"
            bought = await running.payments.close_checkout(str(before), key=key)
            if bought is not None and await _is_alive(bought):
                await running.payments.close_checkout(session_id, key=f"close:{session_id}")
                raise _exists()
        if await checkouts.follow(running.database, organization_id, before, session_id, now()):
            return
    raise Unavailable(
        "Another checkout is already open. Complete it, or try again in a few minutes.",
        retryAfter=1,
    )


async def _is_alive(subscription_id: str) -> bool:
    facts = await service().payments.subscription(subscription_id)
    return facts.ended_at is None and facts.status not in {"canceled", "incomplete_expired"}


async def visit_portal(organization_id: str) -> str:
    """Open the processor's billing portal; 409 before a plan was bought."""
    await member_of(organization_id, at_least="admin")
    require_key()
    view = await standing(organization_id)
    if view.customer_id is None:
        raise Conflict(
            "The billing portal is available once you have a subscription. Choose a plan first.",
            code="no_customer",
        )
    await limits.admit(policies.BILLING)
    await record(organization_id, "portal.opened")
    page = await service().payments.portal(
        view.customer_id,
        addresses(organization_id, "portal").success_url,
        yearly=plans.is_yearly_open(view.created_at, now()),
    )
    return page.url


async def buy_credits(organization_id: str, cents: int) -> str:
    """Open the page on which credits are bought, for an amount before tax."""
    await member_of(organization_id, at_least="admin")
    require_key()
    await limits.admit(policies.CREDIT_PURCHASE, whose=limits.of_organization(organization_id))
    if not SMALLEST_PURCHASE_CENTS <= cents <= LARGEST_PURCHASE_CENTS:
        raise Unprocessable(
            "The amount is out of range. Choose an amount between 5 and 5,000 USD.",
            code="amount_out_of_range",
            minimum=_money(SMALLEST_PURCHASE_CENTS),
            maximum=_money(LARGEST_PURCHASE_CENTS),
        )
    nonce = new_id("purchase")
    await record(organization_id, "credits.purchase_started", cents=cents)
    # Whoever comes back is told of this purchase, and not of one before.
    last = await credits.entries(service().database, organization_id, 1)
    to = addresses(organization_id, "credits")
    to = replace(to, success_url=f"{to.success_url}&after={last[0][0].seq if last else 0}")
    page = await service().payments.credits_checkout(
        Buyer(organization_id),
        cents,
        to,
        key=f"credits:{organization_id}:{nonce}",
    )
    return page.url


async def sponsor(organization_id: str | None) -> str:
    """Open the page on which a sponsor pays; an organization may, and so may a person."""
    if organization_id is not None:
        await member_of(organization_id)
    require_key()
    await limits.admit(policies.BILLING)
    running, nonce = service(), new_id("sponsor")
    cents = running.settings.sponsor_price_cents
    if organization_id is not None:
        await record(organization_id, "sponsor.started", cents=cents)
    else:
        async with running.database.transaction() as tx:
            user_id = caller().user_id
            await audit.write(tx, "sponsor.started", user_id, actor=user_id, cents=cents)
    page = await running.payments.sponsor_checkout(
        organization_id, cents, addresses(organization_id, "sponsor"), key=f"sponsor:{nonce}"
    )
    return page.url


async def record(organization_id: str, act: BillingAct, **detail: Any) -> None:
    """Write down what the caller asks for, each time they do."""
    message = RecordBillingAct(act=act, user_id=caller().user_id, at=now(), detail=detail)
    await ask(organization(organization_id), message)


def require_key() -> None:
    """Refuse, before anything is written down what no processor is there for."""
    if service().settings.payments_secret_key is None:
        raise MissingCredential("PAYMENTS_SECRET_KEY")


def _exists() -> Conflict:
    return Conflict(
        "Your organization already has a subscription. Change its plan instead.",
        code="subscription_exists",
    )


def _money(cents: int) -> dict[str, Any]:
    return {"amount": cents, "currency": plans.CURRENCY}
