"""An organization that is told what the payment processor says, without a database."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.actors.organization import processor
from tests.actors.organization.processor import END, START, event
from tolsey.actors.organization import plans
from tolsey.actors.organization.billing import applying
from tolsey.actors.organization.billing.messages import Applied, ApplyPaymentEvent, PricedOffer
from tolsey.actors.organization.billing.payment_events.catalogue import keep, read
from tolsey.actors.organization.billing.payment_events.envelopes import open_envelope
from tolsey.actors.organization.state import OrganizationState
from tolsey.storage.records.journal import AuditRecord
from tolsey.storage.records.money.payment_event import PaymentEventSettled
from tolsey.storage.records.money.subscription import SubscriptionRecord

AT = datetime.fromtimestamp(START, UTC)
DAY = 86_400
DOLLAR = plans.MICRO_PER_USD
OFFERS = tuple(
    PricedOffer(f"price_{plan.code}_{cadence}", plan.code, cadence.value)
    for plan in plans.CATALOGUE
    for cadence in plan.prices
)
PRO, MAX_5X = "price_pro_monthly", "price_max_5x_monthly"
PRO_YEARLY = "price_pro_yearly"


def apply_message(
    type_: str, about: dict[str, Any], *, created: int = START, **more: Any
) -> ApplyPaymentEvent:
    """Make the message of an event as a call that completed it does, from the event as it is sent."""
    envelope = open_envelope(event(type_, about, created=created))
    facts = keep(read(envelope))
    given: dict[str, Any] = {"at": envelope.created_at, "offers": OFFERS, **more}
    return ApplyPaymentEvent(
        event_id=envelope.event_id,
        type=type_,
        livemode=False,
        created_at=envelope.created_at,
        facts=facts,
        **given,
    )


def line(price: str, amount: int, start: int = START, end: int = END, **fields: Any) -> Any:
    made = processor.line(amount=amount, period={"start": start, "end": end}, **fields)
    made["pricing"] = {"price_details": {"price": price}}
    return made


def prorated(price: str, amount: int, start: int, end: int = END) -> Any:
    made = line(price, amount, start, end)
    made["parent"]["subscription_item_details"]["proration"] = True
    return made


def invoice(id: str, *lines: Any, subscription: str = "sub_1", **fields: Any) -> dict[str, Any]:
    made = processor.invoice(*(lines or (line(PRO, 7_900),)), id=id, **fields)
    made["parent"]["subscription_details"]["subscription"] = subscription
    return made


def subscription(
    price: str = PRO, start: int = START, end: int = END, **fields: Any
) -> dict[str, Any]:
    made = processor.subscription(**fields)
    (item,) = made["items"]["data"]
    item |= {"price": {"id": price}, "current_period_start": start, "current_period_end": end}
    return made


@dataclass
class PureOrganization:
    """An organization and everything that its turns wrote."""

    state: OrganizationState = field(
        default_factory=lambda: OrganizationState("org_1", created_at=AT - timedelta(days=90))
    )
    records: list[Any] = field(default_factory=list)

    def apply(self, message: ApplyPaymentEvent) -> Applied:
        decision = applying.apply(self.state, message)
        self.state = decision.state
        self.records += decision.records
        assert isinstance(decision.reply, Applied)
        return decision.reply

    def tell(self, type_: str, about: dict[str, Any], **more: Any) -> Applied:
        return self.apply(apply_message(type_, about, **more))

    @property
    def subscription(self) -> SubscriptionRecord:
        assert self.state.subscription is not None
        return self.state.subscription

    @property
    def dollars(self) -> float:
        return self.state.credits.standing.balance / DOLLAR

    @property
    def plan(self) -> str:
        assert self.state.subscription is None or self.state.subscription.plan == self.state.plan
        return self.state.plan

    @property
    def audit(self) -> list[str]:
        return [one.event for one in self.records if isinstance(one, AuditRecord)]

    @property
    def settled(self) -> list[tuple[str, str | None]]:
        found = (one for one in self.records if isinstance(one, PaymentEventSettled))
        return [(one.state, one.why) for one in found]

    @property
    def kinds(self) -> dict[str, int]:
        """Sum up what is left of each kind of grant."""
        found: dict[str, int] = {}
        for lot in self.state.credits.lots.values():
            found[lot.kind] = found.get(lot.kind, 0) + lot.remaining
        return found
