"""Orders of the Admin API in the shape of their webhook bodies, so that one reader takes both."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from tolsey.actors.bodies import lenient
from tolsey.http.clients.commerce.shapes import (
    flag,
    mapping,
    money,
    number_of,
    objects,
    text,
    text_or_none,
)


def webhook_order(value: Mapping[str, Any]) -> dict[str, Any]:
    """Put a re-read order in the shape of its webhook body, with the few fields we keep."""
    buyer = value.get("customer")
    return {
        "id": number_of(value.get("id"), "Order"),
        "admin_graphql_api_id": value.get("id"),
        "name": text_or_none(value.get("name"), "name of an order"),
        "test": flag(value.get("test"), "test of an order"),
        "created_at": text_or_none(value.get("createdAt"), "createdAt of an order"),
        "processed_at": text_or_none(value.get("processedAt"), "processedAt of an order"),
        "updated_at": text_or_none(value.get("updatedAt"), "updatedAt of an order"),
        "cancelled_at": text_or_none(value.get("cancelledAt"), "cancelledAt of an order"),
        "closed_at": text_or_none(value.get("closedAt"), "closedAt of an order"),
        "source_name": text_or_none(value.get("sourceName"), "sourceName of an order"),
        "financial_status": _lowered(value.get("displayFinancialStatus")),
        "fulfillment_status": _fulfillment(value.get("displayFulfillmentStatus")),
        "currency": text(value.get("currencyCode"), "the currency of an order"),
        "total_price": str(money(value.get("totalPriceSet"), "the total of an order")),
        "current_total_price": str(
            money(value.get("currentTotalPriceSet"), "the current total of an order")
        ),
        "customer": None if buyer is None else _webhook_customer(mapping(buyer, "a customer")),
    }


def exported_order(value: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Put an order of an export in the shape of its webhook body, with all that is kept of one."""
    visit = lenient(lenient(value.get("customerJourneySummary")).get("lastVisit"))
    shipping = value.get("shippingLine")
    return {
        **webhook_order(value),
        "cancel_reason": _lowered(value.get("cancelReason")),
        "email": value.get("email"),
        "tags": ", ".join(value.get("tags") or ()),
        "note_attributes": [
            {"name": each.get("key"), "value": each.get("value")}
            for each in objects(value.get("customAttributes"), "the attributes of an order")
        ],
        "landing_site": visit.get("landingPage"),
        "referring_site": visit.get("referrerUrl"),
        "line_items": [_webhook_line(line) for line in lines],
        "discount_codes": [{"code": code} for code in value.get("discountCodes") or ()],
        "total_discounts": _plain(value.get("totalDiscountsSet"), "the discounts of an order"),
        "shipping_lines": [
            {
                "title": line.get("title"),
                "price": _plain(line.get("originalPriceSet"), "the shipping of an order"),
            }
            for line in ([] if shipping is None else objects([shipping], "shipping of an order"))
        ],
        "refunds": _webhook_refunds(value),
    }


def _webhook_line(line: Mapping[str, Any]) -> dict[str, Any]:
    product, variant = line.get("product"), line.get("variant")
    return {
        "id": number_of(line.get("id"), "LineItem"),
        "product_id": product and number_of(product.get("id"), "Product"),
        "variant_id": variant and number_of(variant.get("id"), "ProductVariant"),
        "title": line.get("title"),
        "variant_title": line.get("variantTitle"),
        "sku": line.get("sku"),
        "quantity": line.get("quantity"),
        "current_quantity": line.get("currentQuantity"),
        "price": _plain(line.get("originalUnitPriceSet"), "the price of a line"),
        "total_discount": _plain(line.get("totalDiscountSet"), "the discount of a line"),
    }


def _webhook_refunds(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Write an order's refunds, each with what it gave back.

    A refund's movements are a connection inside a list, which no export may hold: it says their sum, whether
    they succeeded or not. Where one of the order's has not, who alone got money back is known, and of several
    nobody knows: their deliveries tell when they have.
    """
    refunds = objects(value.get("refunds"), "the refunds of an order")
    moved = [
        (text(each.get("status"), "the status of a payment"), each)
        for each in objects(value.get("transactions"), "the payments of an order")
        if each.get("kind") == "REFUND"
    ]
    given = [each for status, each in moved if status == "SUCCESS"]
    amounts: list[str | None]
    if len(given) == len(moved):
        amounts = [_plain(each.get("totalRefundedSet"), "a refund") for each in refunds]
    elif len(refunds) == 1:
        amounts = [
            str(sum((money(each.get("amountSet"), "a refund") for each in given), Decimal(0)))
        ]
    else:
        amounts = [None for _ in refunds]
    return [
        {
            "id": number_of(each.get("id"), "Refund"),
            "order_id": number_of(value.get("id"), "Order"),
            "created_at": each.get("createdAt"),
            "processed_at": each.get("processedAt"),
            "transactions": []
            if amount is None
            else [
                {
                    "kind": "refund",
                    "status": "success",
                    "amount": amount,
                    "currency": value.get("currencyCode"),
                }
            ],
        }
        for each, amount in zip(refunds, amounts, strict=True)
    ]


def _plain(value: object, what: str) -> str:
    return str(money(value, what))


def _webhook_customer(buyer: Mapping[str, Any]) -> dict[str, Any]:
    address = buyer.get("defaultEmailAddress")
    return {
        "id": number_of(buyer.get("id"), "Customer"),
        "email": None
        if address is None
        else text_or_none(mapping(address, "an address").get("emailAddress"), "an address"),
    }


def _lowered(value: object) -> str | None:
    return value.lower() if isinstance(value, str) else None


def _fulfillment(value: object) -> str | None:
    """Translate a display status into the webhook's words, where nothing sent yet is null."""
    words = {"UNFULFILLED": None, "PARTIALLY_FULFILLED": "partial"}
    return words[value] if isinstance(value, str) and value in words else _lowered(value)
