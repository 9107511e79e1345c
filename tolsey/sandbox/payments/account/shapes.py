"""Fields that the installed package knows of an object and that nothing here fills."""

from functools import cache
from typing import Any

import stripe

_KINDS: dict[str, Any] = {
    "charge": stripe.Charge,
    "checkout.session": stripe.checkout.Session,
    "invoice": stripe.Invoice,
    "payment_intent": stripe.PaymentIntent,
    "payout": stripe.Payout,
    "refund": stripe.Refund,
    "subscription": stripe.Subscription,
}
_ABSENT = frozenset(
    {
        "authorization_code",
        "deleted",
        "level3",
        "line_items",
        "payments",
        "presentment_details",
        "radar_options",
        "refunds",
        "return_url",
    }
)
"""What an answer lacks unless it is asked for, or unless it applies."""


def completed(obj: dict[str, Any]) -> dict[str, Any]:
    """Give an object with null in every field that may be null and has no value yet."""
    kind = obj["object"]
    if kind not in _KINDS:
        return obj
    filled = {**dict.fromkeys(_nullable(kind)), **obj}
    if "livemode" not in _KINDS[kind].__annotations__:
        del filled["livemode"]
    return filled


@cache
def _nullable(kind: str) -> tuple[str, ...]:
    fields = _KINDS[kind].__annotations__
    return tuple(
        name
        for name, type_ in fields.items()
        if str(type_).startswith(("typing.Optional", "typing.Union")) and name not in _ABSENT
    )
