"""The page on which a person plays time, the banks and the holders of cards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tolsey.sandbox.clock import instant
from tolsey.sandbox.payments.account.books import Obj
from tolsey.sandbox.payments.account.merchant import Merchant
from tolsey.sandbox.payments.account.webhooks import Delivery
from tolsey.sandbox.payments.course.accounts import Accounts
from tolsey.sandbox.payments.course.business import READS
from tolsey.sandbox.payments.face import html

_EVENTS = 20


@dataclass(frozen=True)
class _Seller:
    """A seller's own account: how many payments it has, and what each restricted key of it may."""

    id: str
    payments: int
    keys: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class _Event:
    """An event, and the statuses that each listener answered; None when nobody listens."""

    type: str
    taken: Sequence[Sequence[int | None]] | None


def control_page(accounts: Accounts) -> str:
    """Write what the platform's account holds, each with what can happen to it."""
    return html.page(
        "control",
        now=instant(accounts.clock.now()),
        customers=_newest(accounts, "customer"),
        debits=[
            intent
            for intent in _newest(accounts, "payment_intent")
            if intent["status"] == "processing"
        ],
        charges=[charge for charge in _newest(accounts, "charge") if charge["paid"]],
        disputes=_newest(accounts, "dispute"),
        connected=[
            account
            for account in _newest(accounts, "account")
            if account["id"] != accounts.platform.id
        ],
        sellers=[_seller(one) for one in accounts.merchants.values() if not one.platform],
        events=_events(accounts),
        reads=READS,
    )


def _seller(merchant: Merchant) -> _Seller:
    keys = {key.secret: sorted(key.permissions) for key in merchant.keys.values() if key.restricted}
    return _Seller(merchant.id, sum(1 for _ in merchant.books.each("charge")), keys)


def _events(accounts: Accounts) -> list[_Event]:
    sent: dict[str, list[Delivery]] = {}
    for delivery in accounts.webhooks.log:
        sent.setdefault(delivery.event_id, []).append(delivery)
    shown = _newest(accounts, "event")[:_EVENTS]
    taken = [[one.statuses for one in sent.get(event["id"], [])] or None for event in shown]
    return [_Event(event["type"], each) for event, each in zip(shown, taken, strict=True)]


def _newest(accounts: Accounts, kind: str) -> list[Obj]:
    return list(accounts.platform.books.each(kind))[::-1]
