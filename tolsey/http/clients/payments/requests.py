"""What is asked of the payment processor, word for word (rules/payments#requests).

Every shape is the package's own type, so a field that the processor does not know is a type error.
"""

from datetime import datetime
from typing import Any, Final, Literal, TypeAlias, get_args

from stripe.params import (
    AccountCreateParams,
    InvoiceCreatePreviewParams,
    RefundCreateParams,
    SubscriptionScheduleUpdateParams,
    SubscriptionUpdateParams,
)
from stripe.params.billing_portal import (
    ConfigurationCreateParams,
    ConfigurationCreateParamsFeaturesSubscriptionUpdateProduct,
)
from stripe.params.checkout import SessionCreateParams, SessionCreateParamsLineItem

from tolsey.actors.organization.billing.payment_events.metadata import CREDITS, SPONSOR
from tolsey.actors.organization.plans import TAX_BEHAVIOUR, Cadence
from tolsey.actors.processor import Addresses, Buyer, Subscribed

CURRENCY: Final = "usd"
Feedback: TypeAlias = Literal[
    "customer_service",
    "low_quality",
    "missing_features",
    "other",
    "switched_service",
    "too_complex",
    "too_expensive",
    "unused",
]
"""Why a subscription is cancelled, in the processor's words."""
FEEDBACK: Final[tuple[Feedback, ...]] = get_args(Feedback)
SUBSCRIPTION: Final = "subscription"
ELECTRONIC_SERVICES: Final = "txcd_10000000"
"""The processor's tax code for services delivered electronically."""


def subscription_checkout(
    buyer: Buyer, price_id: str, plan: str, cadence: str, to: Addresses
) -> SessionCreateParams:
    """Ask for the page on which a plan is bought; a known customer's name and address follow it."""
    said = {"org_id": buyer.organization_id, "plan": plan}
    asked: SessionCreateParams = {
        "mode": "subscription",
        "line_items": [{"price": price_id, "quantity": 1}],
        "tax_id_collection": {"enabled": True},
        "automatic_tax": {"enabled": True},
        "consent_collection": {"terms_of_service": "required"},
        "metadata": {**said, "kind": SUBSCRIPTION, "cadence": cadence},
        "subscription_data": {"metadata": said, "billing_mode": {"type": "flexible"}},
        "client_reference_id": buyer.organization_id,
        "success_url": to.success_url,
        "cancel_url": to.cancel_url,
    }
    if buyer.customer_id is not None:
        asked["customer"] = buyer.customer_id
        asked["customer_update"] = {"name": "auto", "address": "auto"}
    return asked


def credits_checkout(buyer: Buyer, cents: int, to: Addresses) -> SessionCreateParams:
    """Ask for the page on which credits are bought, always as a new customer ("Decided")."""
    said = {"org_id": buyer.organization_id, "kind": CREDITS, "credits_cents": str(cents)}
    line = _line(cents, "Credits")
    line["price_data"]["tax_behavior"] = TAX_BEHAVIOUR
    line["price_data"]["product_data"]["tax_code"] = ELECTRONIC_SERVICES
    return {
        "mode": "payment",
        "customer_creation": "always",
        "line_items": [line],
        "tax_id_collection": {"enabled": True},
        "automatic_tax": {"enabled": True},
        "invoice_creation": {"enabled": True},
        "metadata": said,
        "payment_intent_data": {"metadata": said},
        "client_reference_id": buyer.organization_id,
        "success_url": to.success_url,
        "cancel_url": to.cancel_url,
    }


def sponsor_checkout(organization_id: str | None, cents: int, to: Addresses) -> SessionCreateParams:
    """Ask for the page on which a sponsor pays."""
    said = {"kind": SPONSOR}
    if organization_id is not None:
        said["org_id"] = organization_id
    return {
        "mode": "payment",
        "submit_type": "pay",
        "line_items": [_line(cents, "Sponsorship")],
        "metadata": said,
        "payment_intent_data": {"metadata": said},
        "success_url": to.success_url,
        "cancel_url": to.cancel_url,
    }


def _line(cents: int, name: str) -> Any:
    line: SessionCreateParamsLineItem = {
        "quantity": 1,
        "price_data": {
            "currency": CURRENCY,
            "unit_amount": cents,
            "product_data": {"name": name},
        },
    }
    return line


def upgrade(held: Subscribed, price_id: str) -> SubscriptionUpdateParams:
    """Ask for another price now: a new cycle whose invoice is paid, or nothing changes.

    One that was to end goes on: all in one request, of which nothing is done or everything.
    """
    return {
        "items": [{"id": held.item_id, "price": price_id}],
        "proration_behavior": "always_invoice",
        "payment_behavior": "error_if_incomplete",
        "billing_cycle_anchor": {"type": "now"},
        "cancel_at_period_end": False,
    }


def upgrade_preview(held: Subscribed, price_id: str) -> InvoiceCreatePreviewParams:
    """Ask what `upgrade` would be invoiced with."""
    return {
        "subscription": held.subscription_id,
        "subscription_details": {
            "items": [{"id": held.item_id, "price": price_id}],
            "proration_behavior": "always_invoice",
            "billing_cycle_anchor": {"type": "now"},
        },
    }


def downgrade(
    schedule: Any, price_id: str, plan: str, cadence: str
) -> SubscriptionScheduleUpdateParams:
    """Ask a schedule to go on as it is until the period ends, and then with another price.

    What is now is taken from the schedule itself: any other word for it would change it at once.
    """
    begun = schedule["current_phase"]["start_date"]
    (phase,) = (one for one in schedule["phases"] if one["start_date"] == begun)
    # A phase that does not say how it is taxed may fall back to the schedule's defaults, and the tax
    # that is lost is ours (rules/payments#requests).
    taxed: Any = {"enabled": (phase.get("automatic_tax") or {}).get("enabled", True)}
    interval: Literal["month", "year"] = "year" if cadence == Cadence.YEARLY else "month"
    return {
        "end_behavior": "release",
        "proration_behavior": "none",
        "phases": [
            {
                "items": [
                    {"price": one["price"], "quantity": one["quantity"]} for one in phase["items"]
                ],
                "start_date": phase["start_date"],
                "end_date": phase["end_date"],
                "proration_behavior": "none",
                "automatic_tax": taxed,
            },
            {
                "items": [{"price": price_id, "quantity": 1}],
                "duration": {"interval": interval, "interval_count": 1},
                "proration_behavior": "none",
                "automatic_tax": taxed,
                "metadata": {"plan": plan, "cadence": cadence},
            },
        ],
    }


def next_price_id(schedule: Any) -> str | None:
    """Read which price a schedule goes over to when its current phase ends."""
    current = schedule.get("current_phase") or {}
    for phase in schedule["phases"]:
        if phase["start_date"] == current.get("end_date"):
            price = phase["items"][0]["price"]
            return str(price if isinstance(price, str) else price["id"])
    return None


def cancel(feedback: str | None, comment: str | None) -> SubscriptionUpdateParams:
    """Ask for the end of a subscription with its period, and say why."""
    details: Any = {"feedback": feedback, "comment": comment}
    said = {name: value for name, value in details.items() if value is not None}
    asked: SubscriptionUpdateParams = {"cancel_at_period_end": True}
    if said:
        asked["cancellation_details"] = said  # type: ignore[typeddict-item] # a part of the two
    return asked


def refund(payment_ref: str, cents: int | None, organization_id: str | None) -> RefundCreateParams:
    """Ask for a payment back; one that has only a charge is named by it."""
    asked: RefundCreateParams = {"reason": "requested_by_customer", "expand": ["charge"]}
    if payment_ref.startswith("ch_"):
        asked["charge"] = payment_ref
    else:
        asked["payment_intent"] = payment_ref
    if cents is not None:
        asked["amount"] = cents
    if organization_id is not None:
        asked["metadata"] = {"org_id": organization_id}
    return asked


def portal_configuration(
    products: list[ConfigurationCreateParamsFeaturesSubscriptionUpdateProduct], mark: str
) -> ConfigurationCreateParams:
    """Ask for a portal (rules/plans#buying)."""
    return {
        "features": {
            "customer_update": {
                "enabled": True,
                "allowed_updates": ["email", "name", "address", "tax_id"],
            },
            "invoice_history": {"enabled": True},
            "payment_method_update": {"enabled": True},
            "subscription_cancel": {
                "enabled": True,
                "mode": "at_period_end",
                "cancellation_reason": {"enabled": True, "options": list(FEEDBACK)},
            },
            "subscription_update": {
                "enabled": True,
                "default_allowed_updates": ["price"],
                "proration_behavior": "always_invoice",
                "billing_cycle_anchor": "now",
                "products": products,
                "schedule_at_period_end": {
                    "conditions": [
                        {"type": "decreasing_item_amount"},
                        {"type": "shortening_interval"},
                    ]
                },
            },
        },
        "metadata": {"mark": mark},
    }


def payout_account(user_id: str, email: str) -> AccountCreateParams:
    """Ask for an account of the Express kind, which the platform answers for."""
    return {
        "controller": {
            "stripe_dashboard": {"type": "express"},
            "fees": {"payer": "application"},
            "losses": {"payments": "application"},
            "requirement_collection": "stripe",
        },
        "capabilities": {"transfers": {"requested": True}},
        "email": email,
        "metadata": {"user_id": user_id},
    }


def seconds(at: datetime) -> int:
    """Write a time as the processor does."""
    return int(at.timestamp())
