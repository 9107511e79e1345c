"""Expansion: ids in an answer replaced by the objects they name."""

import copy
from collections.abc import Callable
from typing import Any

from tolsey.sandbox.payments.account.books import Obj, whole
from tolsey.sandbox.payments.account.merchant import Merchant
from tolsey.sandbox.payments.account.refused import Refused


def expanded(merchant: Merchant, obj: Obj, paths: list[str]) -> Obj:
    """Give a copy of an object with everything that was asked for in its place."""
    answer = copy.deepcopy(obj)
    for path in paths:
        _expand(merchant, answer, path.split("."), path)
    return answer


def _expand(merchant: Merchant, obj: Any, parts: list[str], path: str) -> None:
    if isinstance(obj, list):
        for each in obj:
            _expand(merchant, each, parts, path)
        return
    if obj is None or not parts:
        return
    name, *rest = parts
    value = obj.get(name)
    include = _INCLUDED.get((obj.get("object", ""), name))
    if include is not None and value is None:
        value = obj[name] = include(merchant, obj)
    elif isinstance(value, str):
        found = merchant.books.find(value)
        if found is None:
            raise _refused(path)
        value = obj[name] = copy.deepcopy(found)
    elif name not in obj:
        raise _refused(path)
    _expand(merchant, value, rest, path)


def _refused(path: str) -> Refused:
    return Refused(f"This property cannot be expanded ({path}).", param="expand")


def _refunds(merchant: Merchant, charge: Obj) -> Obj:
    found = [r for r in merchant.books.each("refund") if r["charge"] == charge["id"]]
    return whole(copy.deepcopy(found[::-1]), f"/v1/charges/{charge['id']}/refunds")


def _payments(merchant: Merchant, invoice: Obj) -> Obj:
    found = [p for p in merchant.books.each("invoice_payment") if p["invoice"] == invoice["id"]]
    return whole(copy.deepcopy(found), f"/v1/invoice_payments?invoice={invoice['id']}")


def _line_items(merchant: Merchant, session: Obj) -> Obj:
    lines = copy.deepcopy(merchant.lines[session["id"]])
    return whole(lines, f"/v1/checkout/sessions/{session['id']}/line_items")


def _currency_options(merchant: Merchant, price: Obj) -> Obj:
    own = ("custom_unit_amount", "tax_behavior", "unit_amount", "unit_amount_decimal")
    options = merchant.currency_options.get(price["id"], {})
    return copy.deepcopy({price["currency"]: {name: price[name] for name in own}, **options})


_INCLUDED: dict[tuple[str, str], Callable[[Merchant, Obj], Obj]] = {
    ("charge", "refunds"): _refunds,
    ("invoice", "payments"): _payments,
    ("price", "currency_options"): _currency_options,
    ("checkout.session", "line_items"): _line_items,
}
