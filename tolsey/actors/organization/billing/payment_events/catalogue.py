"""The event types that are handled (rules/payments#events)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pydantic import TypeAdapter

from tolsey.actors.bodies import Unreadable
from tolsey.actors.organization.billing.payment_events.envelopes import EventEnvelope
from tolsey.actors.organization.billing.payment_events.fields import within
from tolsey.actors.organization.billing.payment_events.invoices import InvoiceFacts, read_invoice
from tolsey.actors.organization.billing.payment_events.payouts import (
    AccountFacts,
    PayoutFacts,
    read_account,
    read_payout,
)
from tolsey.actors.organization.billing.payment_events.purchases import (
    CheckoutFacts,
    PaymentFacts,
    read_checkout,
    read_payment,
)
from tolsey.actors.organization.billing.payment_events.reversals import (
    DisputeFacts,
    RefundFacts,
    read_dispute,
    read_refund,
)
from tolsey.actors.organization.billing.payment_events.subscriptions import (
    SubscriptionFacts,
    read_subscription,
)

Facts: TypeAlias = (
    CheckoutFacts
    | PaymentFacts
    | InvoiceFacts
    | SubscriptionFacts
    | RefundFacts
    | DisputeFacts
    | PayoutFacts
    | AccountFacts
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventType:
    """What an event of one type is about, and who reads it.

    `of_accounts` says that connected accounts may send it. All others are believed of the platform
    alone: the metadata of an account's own payments is the account's to write.
    """

    object: str
    facts: type[Any]
    read: Callable[[EventEnvelope], Facts]
    of_accounts: bool = False


CHECKOUT: Final = EventType(object="checkout.session", facts=CheckoutFacts, read=read_checkout)
SUBSCRIPTION: Final = EventType(
    object="subscription", facts=SubscriptionFacts, read=read_subscription
)
INVOICE: Final = EventType(object="invoice", facts=InvoiceFacts, read=read_invoice)
PAYMENT: Final = EventType(object="payment_intent", facts=PaymentFacts, read=read_payment)
REFUND: Final = EventType(object="charge", facts=RefundFacts, read=read_refund)
DISPUTE: Final = EventType(object="dispute", facts=DisputeFacts, read=read_dispute)

TYPES: Final[dict[str, EventType]] = {
    "checkout.session.completed": CHECKOUT,
    "customer.subscription.created": SUBSCRIPTION,
    "customer.subscription.updated": SUBSCRIPTION,
    "customer.subscription.deleted": SUBSCRIPTION,
    "invoice.paid": INVOICE,
    "invoice.payment_succeeded": INVOICE,
    "invoice.payment_failed": INVOICE,
    "invoice.payment_action_required": INVOICE,
    "payment_intent.succeeded": PAYMENT,
    "payment_intent.payment_failed": PAYMENT,
    "charge.refunded": REFUND,
    "charge.dispute.created": DISPUTE,
    "charge.dispute.closed": DISPUTE,
    "payout.failed": EventType(
        object="payout", facts=PayoutFacts, read=read_payout, of_accounts=True
    ),
    "account.updated": EventType(
        object="account", facts=AccountFacts, read=read_account, of_accounts=True
    ),
}
"""The 14 types, and `invoice.payment_succeeded`, which says the same as `invoice.paid`."""

_WRITTEN: Final[dict[type[Any], TypeAdapter[Any]]] = {
    kind.facts: TypeAdapter(kind.facts) for kind in TYPES.values()
}


def read(envelope: EventEnvelope) -> Facts:
    """Read the facts of a handled type. Raises Unreadable naming the field that is not as known."""
    kind = TYPES[envelope.type]
    with within("data.object"):
        if envelope.object.get("object") != kind.object:
            raise Unreadable("object", f"not a {kind.object}")
        return kind.read(envelope)


def restore(event_type: str, facts: str) -> Facts:
    """Read facts back that were kept as JSON text."""
    restored: Facts = _WRITTEN[TYPES[event_type].facts].validate_json(facts)
    return restored


def keep(facts: Facts) -> str:
    """Write facts as JSON text, to be kept."""
    return _WRITTEN[type(facts)].dump_json(facts).decode()
