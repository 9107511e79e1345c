"""What time does: periods end, unpaid invoices are tried again, sessions expire."""

from collections.abc import Callable, Iterator

from tolsey.sandbox.payments.account.books import Obj
from tolsey.sandbox.payments.account.merchant import Merchant
from tolsey.sandbox.payments.billing import schedules, subscriptions
from tolsey.sandbox.payments.billing.invoices import pay
from tolsey.sandbox.payments.billing.pending import PENDING_SECONDS, drop_pending
from tolsey.sandbox.payments.billing.periods import end_of
from tolsey.sandbox.payments.course import settlement
from tolsey.sandbox.payments.hosted import checkout

DEBIT_SECONDS = 4 * 86_400
"""How long a bank debit is on its way when nothing settles it before."""
Work = tuple[int, Callable[[], None]]


def next_work(merchant: Merchant) -> Work | None:
    """Give the earliest thing that time brings about for an account, if there is any."""
    return min(_all(merchant), key=lambda work: work[0], default=None)


def _all(merchant: Merchant) -> Iterator[Work]:
    for sub in merchant.books.each("subscription"):
        yield from _of_subscription(merchant, sub)
    for invoice in merchant.books.each("invoice"):
        at = invoice["next_payment_attempt"]
        if invoice["status"] == "open" and at is not None:
            yield at, lambda i=invoice: _retry(merchant, i)  # type: ignore[misc]
    for session in merchant.books.each("checkout.session"):
        if session["status"] == "open":
            yield session["expires_at"], lambda s=session: checkout.expire(merchant, s)  # type: ignore[misc]
    for intent in merchant.books.each("payment_intent"):
        if intent["status"] == "processing":
            charge = merchant.books.get("charge", intent["latest_charge"])
            end = charge["created"] + DEBIT_SECONDS
            yield end, lambda i=intent: settlement.settle(merchant, i, paid=True)  # type: ignore[misc]


def _of_subscription(merchant: Merchant, sub: Obj) -> Iterator[Work]:
    if sub["status"] in subscriptions.ENDED:
        return
    if sub["status"] == "incomplete":
        yield sub["created"] + PENDING_SECONDS, lambda: _give_up(merchant, sub)
        return
    if sub["pending_update"]:
        yield sub["pending_update"]["expires_at"], lambda: drop_pending(merchant, sub)
    yield subscriptions.period_end(sub), lambda: _renew(merchant, sub)


def _give_up(merchant: Merchant, sub: Obj) -> None:
    """End a subscription whose first payment never came."""
    subscriptions.change(merchant, sub, status="incomplete_expired", ended_at=merchant.now())


def _renew(merchant: Merchant, sub: Obj) -> None:
    """Begin the next period and bill it, or end where a cancellation was asked."""
    at = subscriptions.period_end(sub)
    if sub["cancel_at_period_end"]:
        subscriptions.end(merchant, sub)
        return
    drop_pending(merchant, sub)
    previous = {"items": {**sub["items"], "data": [dict(i) for i in sub["items"]["data"]]}}
    before = sub["items"]["data"][0]["price"]["recurring"]
    schedules.enter_next(merchant, sub, at)
    after = sub["items"]["data"][0]["price"]["recurring"]
    if before != after:
        sub["billing_cycle_anchor"] = at
    for item in sub["items"]["data"]:
        end = end_of(at, item["price"]["recurring"], sub["billing_cycle_anchor"])
        item.update(current_period_start=at, current_period_end=end)
    merchant.emit("customer.subscription.updated", sub, previous)
    waiting = merchant.waiting_lines.pop(sub["id"], [])
    lines = [*waiting, *subscriptions.period_lines(merchant, sub)]
    invoice = subscriptions.bill(merchant, sub, lines, "subscription_cycle")
    method = subscriptions.method_of(merchant, sub)
    outcome = pay(merchant, invoice, method, off_session=True)
    if outcome != "later":
        settlement.after(merchant, invoice, paid=outcome == "ok")


def _retry(merchant: Merchant, invoice: Obj) -> None:
    """Try an unpaid invoice again; after the last time its subscription ends."""
    invoice["next_payment_attempt"] = None
    sub = subscriptions.subscription_of(merchant, invoice)
    if sub is None or sub["status"] in (*subscriptions.ENDED, "incomplete"):
        return
    method = subscriptions.method_of(merchant, sub)
    outcome = settlement.pay_invoice(merchant, invoice, method, off_session=True)
    if outcome not in ("ok", "later") and invoice["next_payment_attempt"] is None:
        subscriptions.end(merchant, sub, "payment_failed")
