"""Proration: what a change in the middle of a period gives back and asks for."""

from dataclasses import dataclass

from tolsey.sandbox.payments.account.books import Obj
from tolsey.sandbox.payments.account.merchant import Merchant
from tolsey.sandbox.payments.billing.invoices import make_line
from tolsey.sandbox.payments.billing.periods import end_of, share
from tolsey.sandbox.payments.money.catalog import billed_in


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one item: what it was, what it becomes, and in which period."""

    item: Obj
    price: Obj
    quantity: int
    start: int
    end: int
    anew: bool

    @property
    def same(self) -> bool:
        """Tell whether price and quantity stay what they are."""
        kept: bool = self.price["id"] == self.item["price"]["id"]
        return kept and self.quantity == self.item["quantity"]


def plan_change(item: Obj, price: Obj, quantity: int, at: int, *, now: bool) -> Change:
    """Plan a change; a new rhythm, or an anchor set to now, begins a whole new period."""
    old = item["price"]["recurring"]
    rhythm = price["recurring"]
    anew = now or any(old[name] != rhythm[name] for name in ("interval", "interval_count"))
    if anew:
        return Change(item, price, quantity, at, end_of(at, rhythm), anew=True)
    start, end = item["current_period_start"], item["current_period_end"]
    return Change(item, price, quantity, start, end, anew=False)


def change_lines(merchant: Merchant, changes: list[Change], at: int, *, prorate: bool) -> list[Obj]:
    """Make the lines: the unused rest given back, and the rest or the new period asked for."""
    lines: list[Obj] = []
    for change in changes:
        if prorate and (change.anew or not change.same):
            lines.append(_unused(merchant, change, at))
        if change.anew:
            lines.append(_whole(merchant, change))
        elif prorate and not change.same:
            lines.append(_remaining(merchant, change, at))
    return lines


def _unused(merchant: Merchant, change: Change, at: int) -> Obj:
    item = change.item
    start, end = item["current_period_start"], item["current_period_end"]
    value = _unit_amount(merchant, item, item["price"]) * item["quantity"]
    return make_line(
        merchant,
        item["price"],
        item["quantity"],
        (at, end),
        amount=-share(value, start, end, at),
        item=item,
        proration=True,
        note=f"Unused time on {_name(merchant, item['price'])}",
    )


def _remaining(merchant: Merchant, change: Change, at: int) -> Obj:
    value = _unit_amount(merchant, change.item, change.price) * change.quantity
    return make_line(
        merchant,
        change.price,
        change.quantity,
        (at, change.end),
        amount=share(value, change.start, change.end, at),
        item=change.item,
        proration=True,
        note=f"Remaining time on {_name(merchant, change.price)}",
    )


def _whole(merchant: Merchant, change: Change) -> Obj:
    period = (change.start, change.end)
    return make_line(merchant, change.price, change.quantity, period, item=change.item)


def _unit_amount(merchant: Merchant, item: Obj, price: Obj) -> int:
    """Return what a price costs in the currency of an item's subscription."""
    currency = merchant.books.get("subscription", item["subscription"])["currency"]
    amount: int = billed_in(merchant, price, currency)["unit_amount"]
    return amount


def _name(merchant: Merchant, price: Obj) -> str:
    name: str = merchant.books.get("product", price["product"])["name"]
    return name
