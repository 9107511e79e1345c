"""The page on which an organization sees what it pays for, and asks for something else."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlencode, urlsplit

from markupsafe import Markup

from tolsey.actors.organization import plans
from tolsey.actors.organization.billing.messages import SubscriptionView
from tolsey.actors.organization.messages import CreditsView
from tolsey.actors.organization.plans import Cadence, Plan
from tolsey.http.money.grants import key_of
from tolsey.http.pages import credits, forms, layout
from tolsey.http.pages.forms import Filled
from tolsey.http.pages.words import credit, day, dollars
from tolsey.http.paging import cursor_of
from tolsey.storage.people.accounts import OrganizationRow
from tolsey.storage.records.money.credits import CreditEntry, CreditPosting

PATH: Final = "/billing"
ACTING: Final = frozenset({"owner", "admin"})
"""The roles that may spend an organization's money."""
STATES: Final[dict[str, tuple[str, layout.Tone]]] = {
    "active": ("Active", "good"),
    "trialing": ("Active", "good"),
    "past_due": ("Payment failed", "bad"),
    "unpaid": ("Unpaid", "bad"),
    "incomplete": ("Payment awaited", "warn"),
    "paused": ("Paused", "warn"),
}
PER: Final = {Cadence.MONTHLY: "month", Cadence.YEARLY: "year"}


@dataclass(frozen=True, slots=True)
class Account:
    """What there is to show: an organization, what it pays for, its credits, at a moment."""

    organization: OrganizationRow
    organizations: Sequence[OrganizationRow]
    held: SubscriptionView
    credits: CreditsView
    entries: Sequence[tuple[CreditEntry, Sequence[CreditPosting]]]
    at: datetime

    @property
    def plan(self) -> Plan:
        """The plan in effect."""
        return plans.BY_CODE[self.held.plan]

    @property
    def cadence(self) -> Cadence:
        """How often it is paid."""
        return Cadence(self.held.cadence or Cadence.MONTHLY)

    @property
    def may_act(self) -> bool:
        """Whether who looks may spend the organization's money."""
        return self.organization.role in ACTING


def address(organization_id: str, path: str = PATH, **more: str) -> str:
    """Give the address of an organization's page."""
    return f"{path}?{urlencode({'organizationId': organization_id, **more})}"


def changes_later(held: SubscriptionView) -> bool:
    """Tell whether a change or the end waits for the end of the period."""
    return held.cancel_at_period_end or held.schedule_id is not None


def page(
    account: Account,
    notices: Sequence[Markup],
    filled: Filled,
    email: str,
    look_again: str | None = None,
) -> Markup:
    """Write the whole page, with what is to be said first and the form that was filled in wrong."""
    parts = [
        _head(account),
        *notices,
        *_warnings(account),
        Markup('<div class="pair">{}{}</div>').format(
            _plan(account), credits.summary(account.credits, _buying(account, filled))
        ),
    ]
    if account.may_act and account.plan is not plans.CUSTOM:
        parts.append(_choices(account))
    parts.append(credits.grants(account.credits, _next_grants(account)))
    parts.append(credits.ledger(account.entries))
    return layout.document("Billing", layout.together(parts), email=email, look_again=look_again)


def act(organization_id: str, path: str, label: str, kind: str = "", **more: str) -> Markup:
    """Write a form of one button that asks for something in an organization's name."""
    sent = {"organizationId": organization_id, **more}
    return Markup('<form method="post" action="{}">{}<button class="{}">{}</button></form>').format(
        path, Markup().join(forms.hidden(*pair) for pair in sent.items()), kind, label
    )


def _next_grants(account: Account) -> str | None:
    """Give the address of the page with the grants that are spent after those shown."""
    after = account.credits.following
    if after is None:
        return None
    return address(account.organization.id, cursor=cursor_of(key_of(after)))


def _head(account: Account) -> Markup:
    others = [one for one in account.organizations if one.id != account.organization.id]
    links = Markup(" · ").join(
        Markup('<a href="{}">{}</a>').format(address(one.id), one.name) for one in others
    )
    switch = Markup('<p class="quiet">Switch to {}</p>').format(links) if others else ""
    return Markup('<div class="head"><div><h1>Billing</h1><p>{}</p></div>{}</div>').format(
        account.organization.name, switch
    )


def _warnings(account: Account) -> Iterator[Markup]:
    held = account.held
    if held.dunning_since is not None:
        link = ""
        if held.dunning_url and urlsplit(held.dunning_url).scheme in {"https", "http"}:
            link = Markup('<a class="button" href="{}">Pay now</a>').format(held.dunning_url)
        said = Markup(
            "<p>The invoice of {} could not be collected. Pay it to keep your plan.</p>{}"
        ).format(day(held.dunning_since), link)
        yield Markup('<div class="notice bad" role="alert">{}</div>').format(said)
    if account.credits.standing.available < 0:
        yield layout.notice(
            "warn",
            "A refund or a dispute took back credits that were already used. "
            "New credits pay for them first.",
        )
    if not account.may_act:
        yield layout.notice("warn", "Only owners and admins can change the plan or buy credits.")


def _plan(account: Account) -> Markup:
    facts = Markup().join(
        Markup("<div><dt>{}</dt><dd>{}</dd></div>").format(name, value)
        for name, value in _facts(account)
    )
    return Markup(
        '<section class="card" id="plan"><div class="head"><h2>Plan</h2>{}</div>'
        '<p class="figure">{}</p><dl>{}</dl>{}</section>'
    ).format(_chip(account), account.plan.name, facts, _plan_actions(account))


def _chip(account: Account) -> Markup:
    held = account.held
    if not held.is_subscribed:
        return Markup()
    said, tone = STATES.get(held.status or "", ("Not active", "warn"))
    if held.cancel_at_period_end:
        said, tone = "Cancelled", "warn"
    return Markup('<span class="chip {}">{}</span>').format(tone, said)


def _facts(account: Account) -> Iterator[tuple[str, str | Markup]]:
    """List what is to know about the plan: its price, its next day, what comes then."""
    held, plan = account.held, account.plan
    if plan is plans.CUSTOM:
        yield "Price", "By contract"
    elif plan is plans.FREE:
        yield "Price", "Free"
    else:
        price = dollars(plan.prices[account.cadence].cents)
        yield "Price", f"{price} per {PER[account.cadence]}, plus tax"
    if held.is_subscribed and held.period_end is not None:
        named, following = _ahead(held, account.cadence)
        yield named, day(held.period_end)
        if following is not None:
            yield "Then", following
    yield (
        "Stores included",
        "By contract" if plan.stores_included is None else str(plan.stores_included),
    )


def _ahead(held: SubscriptionView, cadence: Cadence) -> tuple[str, str | None]:
    """Name what happens at the end of the period, and what the organization has after it."""
    if held.cancel_at_period_end:
        return "Ends on", "Free. Your stores stay."
    if held.next_plan is None:
        return "Renews on", None
    name = plans.BY_CODE[held.next_plan].name
    return "Changes on", f"{name}, paid {held.next_cadence or cadence}"


def _plan_actions(account: Account) -> Markup:
    id, held = account.organization.id, account.held
    if not account.may_act or held.customer_id is None:
        return Markup()
    actions = act(id, f"{PATH}/portal", "Invoices and card", "second")
    link = Markup('<a class="button plain" href="{}">{}</a>')
    if held.is_subscribed and changes_later(held) and account.plan.is_sold:
        same = {"plan": account.plan.code, "cadence": str(account.cadence)}
        kept = address(id, f"{PATH}/change", **same)
        actions += link.format(kept, f"Keep {account.plan.name}")
    if held.is_subscribed and not held.cancel_at_period_end:
        actions += link.format(address(id, f"{PATH}/cancel"), "Cancel plan")
    return Markup('<div class="actions">{}</div>').format(actions)


def _buying(account: Account, filled: Filled) -> Markup:
    return credits.buying(account.organization.id, filled) if account.may_act else Markup()


def _choices(account: Account) -> Markup:
    """Write the form that chooses a plan: bought on the processor's page, or changed after a look."""
    id = account.organization.id
    subscribed = account.held.is_subscribed
    lead = (
        "A higher plan is charged to your card at once and starts a new period. "
        "A lower one waits for the end of the period."
        if subscribed
        else "You pay on our payment processor's page. Prices are in US dollars; tax is added there."
    )
    return Markup(
        '<section class="card"><div><h2>{title}</h2><p class="quiet">{lead}</p></div>'
        '<form method="{method}" action="{action}">{id}'
        '<fieldset><legend class="hidden">Plan</legend><div class="plans">{plans}</div></fieldset>'
        "{cadences}<div><button>{button}</button></div></form></section>"
    ).format(
        title="Change plan" if subscribed else "Choose a plan",
        lead=lead,
        method="get" if subscribed else "post",
        action=f"{PATH}/change" if subscribed else f"{PATH}/checkout",
        id=forms.hidden("organizationId", id),
        plans=Markup().join(_choice(plan, account) for plan in plans.CATALOGUE if plan.is_sold),
        cadences=_cadences(account),
        button="Review the change" if subscribed else "Continue to payment",
    )


def _choice(plan: Plan, account: Account) -> Markup:
    chosen = account.plan if account.plan.is_sold else plans.PRO
    workflows = plan.concurrent_workflows
    offers = [
        f"{credit(plan.monthly_allowance_micro or 0).removesuffix('.00')} of credits each month",
        f"{credit(plan.daily_bonus_micro or 0).removesuffix('.00')} bonus each day",
        f"{plan.stores_included} stores",
        f"{workflows} workflows at once" if workflows else "Unlimited workflows at once",
    ]
    yearly = dollars(plan.prices[Cadence.YEARLY].cents)
    return Markup(
        '<label class="option"><span class="head"><span><input type="radio" name="plan" value="{code}"'
        "{checked} required> <b>{name}</b></span>{current}</span>"
        '<span><b class="price">{monthly}</b> per month</span><span class="quiet">or {yearly} per year</span>'
        "<ul>{offers}</ul></label>"
    ).format(
        code=plan.code,
        checked=Markup(" checked") if plan is chosen else "",
        name=plan.name,
        current=Markup('<span class="chip good">Current</span>') if plan is account.plan else "",
        monthly=dollars(plan.prices[Cadence.MONTHLY].cents),
        yearly=yearly,
        offers=Markup().join(Markup("<li>{}</li>").format(offer) for offer in offers),
    )


def _cadences(account: Account) -> Markup:
    created_at = account.held.created_at
    is_open = plans.is_yearly_open(created_at, account.at)
    note = "" if is_open else Markup("opens on {}").format(day(plans.yearly_from(created_at)))
    options = Markup().join(
        Markup(
            '<label><input type="radio" name="cadence" value="{}"{}{} required> {}{}</label>'
        ).format(
            cadence,
            Markup(" checked") if cadence is account.cadence else "",
            Markup(" disabled") if cadence is Cadence.YEARLY and not is_open else "",
            cadence.capitalize(),
            Markup(' <span class="quiet">({})</span>').format(note)
            if note and cadence is Cadence.YEARLY
            else "",
        )
        for cadence in Cadence
    )
    return Markup('<fieldset><legend>Paid</legend><div class="actions">{}</div></fieldset>').format(
        options
    )
