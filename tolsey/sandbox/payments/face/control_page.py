"""The page on which a person plays time, the banks and the holders of cards."""

from html import escape

from tolsey.sandbox.clock import instant
from tolsey.sandbox.payments.account.books import Obj
from tolsey.sandbox.payments.account.webhooks import Delivery
from tolsey.sandbox.payments.course.accounts import Accounts
from tolsey.sandbox.payments.course.business import READS
from tolsey.sandbox.payments.face.html import button, checkbox, money, page

_JUMPS = {"1": "One day on", "31": "A month on", "366": "A year on"}
_CARDS = ("ok", "decline", "insufficient", "authenticate")
_EVENTS = 20


def control_page(accounts: Accounts) -> str:
    """Write what the platform's account holds, each with what can happen to it."""
    parts = (
        _clock(accounts),
        _section("Customers", _customers(accounts)),
        _section("Payments on their way", _debits(accounts)),
        _section("Payments", _charges(accounts)),
        _section("Disputes", _disputes(accounts)),
        _section("Payout accounts", _connected(accounts)),
        _section("Sellers' own accounts", _businesses(accounts)),
        _section("Last events", _events(accounts)),
    )
    return page("Payment processor (sandbox)", "".join(parts))


def _clock(accounts: Accounts) -> str:
    jumps = "".join(button(days, label, "days") for days, label in _JUMPS.items())
    return f"<p>It is {instant(accounts.clock.now())} here.</p>{_form('advance', jumps)}"


def _customers(accounts: Accounts) -> list[str]:
    return [
        f"{escape(customer['email'] or '')} {customer['id']}, the card will be: "
        + _form(
            "set_card",
            "".join(button(word, word, "behaviour") for word in _CARDS),
            customer=customer["id"],
        )
        for customer in _newest(accounts, "customer")
    ]


def _debits(accounts: Accounts) -> list[str]:
    ends = button("yes", "It arrives", "paid") + button("no", "It comes back", "paid")
    return [
        f"{_amount(intent)} {_form('settle', ends, payment_intent=intent['id'])}"
        for intent in _newest(accounts, "payment_intent")
        if intent["status"] == "processing"
    ]


def _charges(accounts: Accounts) -> list[str]:
    wrongs = button("no", "The bank disputes it", "inquiry") + button(
        "yes", "The bank inquires", "inquiry"
    )
    return [
        f"{_amount(charge)}, {_fate(charge)}"
        + ("" if charge["disputed"] else _form("open_dispute", wrongs, charge=charge["id"]))
        for charge in _newest(accounts, "charge")
        if charge["paid"]
    ]


def _fate(charge: Obj) -> str:
    if charge["disputed"]:
        return "disputed"
    given_back = charge["amount_refunded"]
    return f"{money(given_back, charge['currency'])} refunded" if given_back else "paid"


def _disputes(accounts: Accounts) -> list[str]:
    rows = []
    for dispute in _newest(accounts, "dispute"):
        ends = {
            "needs_response": ("won", "lost"),
            "warning_needs_response": ("warning_closed",),
        }.get(dispute["status"], ())
        form = _form(
            "close_dispute",
            "".join(button(end, f"End it as {end}", "status") for end in ends),
            dispute=dispute["id"],
        )
        rows.append(f"{_amount(dispute)}, {dispute['status']}{form if ends else ''}")
    return rows


def _connected(accounts: Accounts) -> list[str]:
    back = button("1000", "A payout of 10 USD comes back", "amount")
    return [
        f"{account['id']}, payouts {'enabled' if account['payouts_enabled'] else 'not enabled'}"
        + _form("onboard", button("submit", "Its holder fills the form in"), account=account["id"])
        + _form("fail_payout", back, account=account["id"])
        for account in _newest(accounts, "account")
        if account["id"] != accounts.platform.id
    ]


def _businesses(accounts: Accounts) -> list[str]:
    boxes = "".join(checkbox(name, name) for name in READS)
    return [
        f"{merchant.id}, {sum(1 for _ in merchant.books.each('charge'))} payments"
        + "".join(
            f"<br><code>{escape(key.secret)}</code> may"
            f" {', '.join(sorted(key.permissions)) or 'nothing'}"
            for key in merchant.keys.values()
            if key.restricted
        )
        + _form("make_key", boxes + button("make", "Make a restricted key"), account=merchant.id)
        for merchant in accounts.merchants.values()
        if not merchant.platform
    ]


def _events(accounts: Accounts) -> list[str]:
    sent: dict[str, list[Delivery]] = {}
    for delivery in accounts.webhooks.log:
        sent.setdefault(delivery.event_id, []).append(delivery)
    return [
        f"{event['type']}: {_taken(sent.get(event['id'], []))}"
        for event in _newest(accounts, "event")[:_EVENTS]
    ]


def _taken(deliveries: list[Delivery]) -> str:
    if not deliveries:
        return "nobody listens"
    return ", ".join(
        " ".join(str(status or "no answer") for status in delivery.statuses) or "waiting"
        for delivery in deliveries
    )


def _newest(accounts: Accounts, kind: str) -> list[Obj]:
    return list(accounts.platform.books.each(kind))[::-1]


def _amount(obj: Obj) -> str:
    return money(obj["amount"], obj["currency"])


def _section(title: str, rows: list[str]) -> str:
    if not rows:
        return ""
    return f"<h2>{title}</h2><ul>{''.join(f'<li>{row}</li>' for row in rows)}</ul>"


def _form(act: str, buttons: str, **hidden: str) -> str:
    kept = "".join(
        f'<input type="hidden" name="{name}" value="{escape(value, quote=True)}">'
        for name, value in hidden.items()
    )
    return f'<form method="post" action="/sandbox/{act}">{kept}{buttons}</form>'
