"""The platform's JSON read strictly into our values: what does not fit raises Misshapen."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from tolsey.actors.listing.verification.revenue import GOING_BACK
from tolsey.actors.ports import PlatformUnreachable, ShopFacts
from tolsey.actors.shops import is_shop_domain
from tolsey.storage.records.selling.revenue import (
    PulledLine,
    PulledOrder,
    PulledRefund,
    PulledTransaction,
)

GID = re.compile(r"gid://shopify/([A-Za-z]{1,60})/(\d{1,20})(?:\?.{0,200})?")
AMOUNT = re.compile(r"-?\d{1,15}(?:\.\d{1,6})?")


class Misshapen(PlatformUnreachable):
    """The platform's answer does not have the published shape, so nothing is taken from it."""

    def __init__(self, what: str) -> None:
        super().__init__(f"Shopify's response is malformed: {what}.")


@dataclass(frozen=True, slots=True)
class ConnectionPage:
    """One page of a connection; `after` is the cursor of the next, None on the last."""

    nodes: Sequence[Mapping[str, Any]]
    after: str | None


def mapping(value: object, what: str) -> Mapping[str, Any]:
    """Take an object."""
    if not isinstance(value, dict):
        raise Misshapen(what)
    return value


def page(value: object, what: str) -> ConnectionPage:
    """Take a connection's nodes and the cursor of the next page."""
    connection = mapping(value, what)
    nodes = connection.get("nodes")
    if not isinstance(nodes, list):
        raise Misshapen(what)
    info = mapping(connection.get("pageInfo"), what)
    after = info.get("endCursor") if info.get("hasNextPage") is True else None
    if after is not None and not isinstance(after, str):
        raise Misshapen(what)
    if info.get("hasNextPage") is True and not after:
        raise Misshapen(what)
    return ConnectionPage([mapping(node, what) for node in nodes], after)


def number_of(value: object, kind: str) -> int:
    """Take the number out of a global id of that kind."""
    number = _number(value, kind) if isinstance(value, str) else None
    if number is None:
        raise Misshapen(f"the id of a {kind}")
    return number


@lru_cache(maxsize=256)
def _number(written: str, kind: str) -> int | None:
    """Read a global id; what belongs to one order mostly follows it, and names it each time."""
    found = GID.fullmatch(written)
    return int(found[2]) if found is not None and found[1] == kind else None


def moment(value: object, what: str) -> datetime:
    """Take a time with its zone, as UTC."""
    at = _moment(value) if isinstance(value, str) else None
    if at is None:
        raise Misshapen(what)
    return at


@lru_cache(maxsize=256)
def _moment(written: str) -> datetime | None:
    """Read a time; an order is mostly processed in the moment in which it is made."""
    try:
        at = datetime.fromisoformat(written)
    except ValueError:
        return None
    return None if at.tzinfo is None else at.astimezone(UTC)


def moment_or_none(value: object, what: str) -> datetime | None:
    """Take a time that may be absent."""
    return None if value is None else moment(value, what)


def money(value: object, what: str) -> Decimal:
    """Take the amount of a MoneyBag in the shop's currency."""
    try:
        return _amount(value["shopMoney"]["amount"])  # type: ignore[index]  # what is none is caught
    except (TypeError, KeyError, ValueError):
        raise Misshapen(what) from None


@lru_cache(maxsize=4096)
def _amount(written: str) -> Decimal:
    """Read an amount; most sums of most orders are one of a few, and many are nothing."""
    if AMOUNT.fullmatch(written) is None:
        raise ValueError("is not a valid amount")
    return Decimal(written)


def money_or_none(value: object, what: str) -> Decimal:
    """Take the amount of a MoneyBag that is absent where there is nothing to pay."""
    return Decimal(0) if value is None else money(value, what)


def text(value: object, what: str) -> str:
    """Take a text that is there."""
    if not isinstance(value, str) or not value:
        raise Misshapen(what)
    return value


def text_or_none(value: object, what: str) -> str | None:
    """Take a text that may be absent or empty."""
    return text(value, what) if value else None


def flag(value: object, what: str) -> bool:
    """Take true or false."""
    if not isinstance(value, bool):
        raise Misshapen(what)
    return value


def units(value: object, what: str) -> int:
    """Take a count that is not negative."""
    # a 64-bit count arrives as text
    if isinstance(value, str) and value.isdecimal() and len(value) < 20:  # noqa: PLR2004
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 2**63:
        raise Misshapen(what)
    return value


def line(value: Mapping[str, Any]) -> PulledLine:
    """Take a line of an order."""
    plan = value.get("sellingPlan")
    return PulledLine(
        after_discounts_before_taxes=money(
            value.get("priceAfterAllDiscountsBeforeTaxesSet"), "the price of a line"
        ),
        is_gift_card=flag(value.get("isGiftCard"), "isGiftCard of a line"),
        selling_plan=None if plan is None else _selling_plan(mapping(plan, "a selling plan")),
    )


def _selling_plan(plan: Mapping[str, Any]) -> str:
    """Take the plan's id, or its name once the plan itself is gone."""
    return text(plan.get("sellingPlanId") or plan.get("name"), "a selling plan")


def transactions(value: object) -> tuple[PulledTransaction, ...]:
    """Take an order's movements of money."""
    return tuple([_transaction(each) for each in objects(value, "the transactions of an order")])


def _transaction(value: Mapping[str, Any]) -> PulledTransaction:
    return PulledTransaction(
        kind=text(value.get("kind"), "the kind of a transaction"),
        status=text(value.get("status"), "the status of a transaction"),
        test=flag(value.get("test"), "test of a transaction"),
        manual_payment_gateway=flag(
            value.get("manualPaymentGateway"), "manualPaymentGateway of a transaction"
        ),
        amount=money(value.get("amountSet"), "the amount of a transaction"),
        gateway=text_or_none(value.get("gateway"), "the gateway of a transaction"),
        has_fees=bool(objects(value.get("fees"), "the fees of a transaction")),
    )


def objects(value: object, what: str) -> list[Mapping[str, Any]]:
    """Take a list of objects."""
    if not isinstance(value, list):
        raise Misshapen(what)
    for each in value:
        if not isinstance(each, dict):
            raise Misshapen(what)
    return value


def refund_ids(value: Mapping[str, Any]) -> list[str]:
    """Take the ids of an order's refunds."""
    listed = objects(value.get("refunds"), "the refunds of an order")
    return [text(each.get("id"), "the id of a refund") for each in listed]


def order(
    value: Mapping[str, Any],
    lines: Sequence[PulledLine],
    movements: tuple[PulledTransaction, ...],
) -> PulledOrder:
    """Take an order with the lines and movements gathered for it; what refunds are for comes later."""
    token = text_or_none(value.get("checkoutToken"), "the checkout of an order")
    return PulledOrder(
        order_id=str(number_of(value.get("id"), "Order")),
        processed_at=moment(value.get("processedAt"), "processedAt of an order"),
        created_at=moment(value.get("createdAt"), "createdAt of an order"),
        currency=text(value.get("currencyCode"), "the currency of an order"),
        test=flag(value.get("test"), "test of an order"),
        cancelled_at=moment_or_none(value.get("cancelledAt"), "cancelledAt of an order"),
        source_name=text_or_none(value.get("sourceName"), "the source of an order"),
        has_checkout=token is not None,
        disputes=tuple(
            [
                text(each.get("status"), "the state of a dispute")
                for each in objects(value.get("disputes"), "the disputes of an order")
            ]
        ),
        total=money(value.get("totalPriceSet"), "the total of an order"),
        current_total=money(value.get("currentTotalPriceSet"), "the current total of an order"),
        tax=money(value.get("currentTotalTaxSet"), "the tax of an order"),
        shipping=money(value.get("currentShippingPriceSet"), "the shipping of an order"),
        tip=money(value.get("totalTipReceivedSet"), "the tip of an order"),
        duties=money_or_none(value.get("currentTotalDutiesSet"), "the duties of an order"),
        duties_included=flag(value.get("dutiesIncluded"), "dutiesIncluded of an order"),
        additional_fees=money_or_none(
            value.get("currentTotalAdditionalFeesSet"), "the additional fees of an order"
        ),
        lines=tuple(lines),
        transactions=movements,
    )


def refund(
    value: Mapping[str, Any],
    movements: Sequence[Mapping[str, Any]],
    lines: Sequence[Mapping[str, Any]],
    shipping: Sequence[Mapping[str, Any]],
) -> PulledRefund:
    """Take a refund with the pages gathered for it."""
    goods = sum((money(each.get("subtotalSet"), "a returned line") for each in lines), Decimal(0))
    paid_back = (
        money(each.get("amountSet"), "the amount of a refund")
        for each in movements
        if text(each.get("status"), "the status of a refund").upper() in GOING_BACK
    )
    duties = value.get("duties")
    others = (
        *(money(each.get("totalTaxSet"), "the tax of a returned line") for each in lines),
        *(money(each.get("subtotalAmountSet"), "returned shipping") for each in shipping),
        *(money(each.get("taxAmountSet"), "the tax of returned shipping") for each in shipping),
        *(
            money(each.get("amountSet"), "a returned duty")
            for each in ([] if duties is None else objects(duties, "the duties of a refund"))
        ),
    )
    return PulledRefund(
        at=moment(value.get("processedAt"), "processedAt of a refund"),
        paid_back=sum(paid_back, Decimal(0)),
        goods=goods,
        returned=sum(others, goods),
    )


def shop_facts(data: Mapping[str, Any]) -> ShopFacts:
    """Take what the connect probe answered."""
    shop = mapping(data.get("shop"), "the shop")
    plan = mapping(shop.get("plan"), "the shop's plan")
    installation = mapping(data.get("currentAppInstallation"), "the installation")
    domain = mapping(shop.get("primaryDomain"), "the shop's domain")
    scopes = installation.get("accessScopes")
    if not isinstance(scopes, list):
        raise Misshapen("the granted scopes")
    shop_domain = text(shop.get("myshopifyDomain"), "the shop's own domain").lower()
    if not is_shop_domain(shop_domain):
        raise Misshapen("the shop's own domain")  # calls go there, and carry a token
    return ShopFacts(
        shop_domain=shop_domain,
        name=text(shop.get("name"), "the shop's name"),
        currency=text(shop.get("currencyCode"), "the shop's currency"),
        plan=text(plan.get("publicDisplayName"), "the plan's name"),
        partner_development=flag(plan.get("partnerDevelopment"), "the plan"),
        primary_domain=text(domain.get("host"), "the shop's domain"),
        created_at=moment(shop.get("createdAt"), "the shop's creation time"),
        timezone=text(shop.get("ianaTimezone"), "the shop's time zone"),
        scopes=tuple(text(mapping(scope, "a scope").get("handle"), "a scope") for scope in scopes),
    )


@dataclass(slots=True)
class OpenOrder:
    """An order whose lines are still arriving."""

    value: Mapping[str, Any]
    lines: list[PulledLine] = field(default_factory=list)

    def closed(self) -> PulledOrder:
        """Give the order with every line that arrived."""
        return order(self.value, self.lines, transactions(self.value.get("transactions")))
