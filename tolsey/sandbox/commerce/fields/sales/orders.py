"""What the fields of orders, lines, transactions and refunds read."""

from typing import Any

from tolsey.sandbox.clock import instant
from tolsey.sandbox.commerce.fields.leaves import gid, legacy, when
from tolsey.sandbox.commerce.fields.sales import fulfilments, refunds
from tolsey.sandbox.commerce.query.pages import Page, listed
from tolsey.sandbox.commerce.query.projection import Call, Getter
from tolsey.sandbox.commerce.query.refused import access_denied
from tolsey.sandbox.commerce.shop.money import Money
from tolsey.sandbox.commerce.shop.orders import (
    Customer,
    Line,
    Order,
    Refund,
    Transaction,
    before_taxes,
)
from tolsey.sandbox.commerce.shop.products import Product, Variant


def _first(items: list[Any], call: Call) -> list[Any]:
    wanted = call.args.get("first")
    return items if wanted is None else items[:wanted]


def _customer(order_: Order, call: Call) -> Customer | None:
    if not call.request.shop.grants("read_customers"):
        raise access_denied("customer", "read_customers")
    return order_.customer


def _before_taxes(pair: "tuple[Order, Line]", call: Call) -> Money:
    order_, line = pair
    excluded = call.request.platform.line_prices_exclude_returns
    return order_.money(before_taxes(order_, line, returns_excluded=excluded))


def _lines(order_: Order, call: Call) -> Page:
    return listed([(order_, line) for line in order_.lines]).page(call.args)


def _refund_lines(pair: "tuple[Order, Refund]", call: Call) -> Page:
    order_, refund = pair
    return listed([(order_, line) for line in refund.lines]).page(call.args)


def _refund_shipping(pair: "tuple[Order, Refund]", call: Call) -> Page:
    order_, refund = pair
    lines = [(order_, refund)] if refund.shipping or refund.shipping_tax else []
    return listed(lines).page(call.args)


def _refund_duties(pair: "tuple[Order, Refund]", _: Call) -> list[dict[str, Money]]:
    order_, refund = pair
    return [{"amountSet": order_.money(refund.duties)}] if refund.duties else []


def _fees(paid: Transaction, _: Call) -> list[dict[str, Any]]:
    if not paid.fee:
        return []
    fee = Money(paid.fee, paid.currency)
    named = f"gid://shopify/TransactionFee/{paid.id}"
    return [{"id": named, "type": "processing_fee", "amount": fee}]


def _disputes(order_: Order, _: Call) -> list[dict[str, str]]:
    return [
        {
            "id": f"gid://shopify/OrderDisputeSummary/{each.id}",
            "status": each.status,
            "initiatedAs": each.initiated_as,
        }
        for each in order_.disputes
    ]


def _selling_plan(pair: "tuple[Order, Line]", _: Call) -> dict[str, str] | None:
    plan = pair[1].selling_plan
    if plan is None:
        return None
    return {"name": plan.name, "sellingPlanId": f"gid://shopify/SellingPlan/{plan.id}"}


def _journey(order_: Order, call: Call) -> dict[str, Any] | None:
    if order_.landing_site is None and order_.referring_site is None:
        return None
    home = f"https://{call.request.shop.primary_domain}"
    landing = None if order_.landing_site is None else home + order_.landing_site
    return {
        "ready": True,
        "lastVisit": {"landingPage": landing, "referrerUrl": order_.referring_site},
    }


def _shipping_line(order_: Order, _: Call) -> dict[str, Any] | None:
    if not order_.shipping:
        return None
    return {"title": "Standard", "originalPriceSet": order_.money(order_.shipping)}


def _product(pair: "tuple[Order, Line]", call: Call) -> Product | None:
    return call.request.shop.products.get(pair[1].product_id or 0)


def _variant(pair: "tuple[Order, Line]", call: Call) -> Variant | None:
    product = _product(pair, call)
    variants = () if product is None else product.variants
    return next((one for one in variants if one.id == pair[1].variant_id), None)


ORDER: dict[str, Getter] = {
    "id": gid("Order"),
    "legacyResourceId": legacy,
    "name": lambda o, _: o.name,
    "number": lambda o, _: o.number,
    "createdAt": lambda o, _: instant(o.created_at),
    "processedAt": lambda o, _: instant(o.processed_at),
    "updatedAt": lambda o, _: instant(o.updated_at),
    "cancelledAt": lambda o, _: when(o.cancelled_at),
    "cancelReason": lambda o, _: o.cancel_reason and o.cancel_reason.upper(),
    "closed": lambda o, _: o.closed_at is not None,
    "closedAt": lambda o, _: when(o.closed_at),
    "confirmed": lambda _o, _: True,
    "test": lambda o, _: o.test,
    "note": lambda o, _: o.note,
    "tags": lambda o, _: list(o.tags),
    "email": lambda o, _: o.customer and o.customer.email,
    "customAttributes": lambda _o, _: [],
    "discountCodes": lambda _o, _: [],
    "customerJourneySummary": _journey,
    "shippingLine": _shipping_line,
    "customer": _customer,
    "sourceName": lambda o, _: o.source_name,
    "currencyCode": lambda o, _: o.currency,
    "presentmentCurrencyCode": lambda o, _: o.currency,
    "paymentGatewayNames": lambda o, _: o.gateways,
    "displayFinancialStatus": lambda o, _: o.financial_status,
    "displayFulfillmentStatus": lambda o, _: o.fulfillment_status,
    "fullyPaid": lambda o, _: o.outstanding == 0,
    "unpaid": lambda o, _: o.outstanding > 0,
    "taxesIncluded": lambda o, _: o.taxes_included,
    "subtotalLineItemsQuantity": lambda o, _: o.quantity,
    "currentSubtotalLineItemsQuantity": lambda o, _: sum(x.current_quantity for x in o.lines),
    "lineItems": _lines,
    "fulfillmentOrders": fulfilments.fulfillment_orders,
    "fulfillments": fulfilments.fulfillments,
    "suggestedRefund": refunds.suggested,
    "refunds": lambda o, c: _first([(o, r) for r in o.refunds], c),
    "transactions": lambda o, c: _first(o.transactions, c),
    "totalPriceSet": lambda o, _: Money(o.total, o.currency),
    "originalTotalPriceSet": lambda o, _: Money(o.total, o.currency),
    "currentTotalPriceSet": lambda o, _: Money(o.current_total, o.currency),
    "subtotalPriceSet": lambda o, _: Money(o.subtotal, o.currency),
    "totalDiscountsSet": lambda o, _: Money(o.discounts, o.currency),
    "totalTaxSet": lambda o, _: Money(o.tax, o.currency),
    "totalTipReceivedSet": lambda o, _: Money(o.tip, o.currency),
    "checkoutToken": lambda o, _: o.checkout_token,
    "disputes": _disputes,
    "dutiesIncluded": lambda o, _: o.duties_included,
    "currentTotalTaxSet": lambda o, _: Money(o.current_tax, o.currency),
    "currentShippingPriceSet": lambda o, _: Money(o.current_shipping, o.currency),
    "currentTotalDutiesSet": lambda o, _: Money(o.current_duties, o.currency) if o.duties else None,
    "currentTotalAdditionalFeesSet": lambda o, _: (
        Money(o.additional_fees, o.currency) if o.additional_fees else None
    ),
    "totalShippingPriceSet": lambda o, _: Money(o.shipping, o.currency),
    "totalReceivedSet": lambda o, _: Money(o.received, o.currency),
    "totalRefundedSet": lambda o, _: Money(o.refunded, o.currency),
    "netPaymentSet": lambda o, _: Money(o.received - o.refunded, o.currency),
    "totalOutstandingSet": lambda o, _: Money(o.outstanding, o.currency),
}

# A line is read together with its order, which knows the currency and how tax is meant.
LINE: dict[str, Getter] = {
    "id": lambda p, _: f"gid://shopify/LineItem/{p[1].id}",
    "title": lambda p, _: p[1].title,
    "variantTitle": lambda _p, _: None,
    "product": _product,
    "variant": _variant,
    "name": lambda p, _: p[1].title,
    "sku": lambda p, _: p[1].sku or None,
    "quantity": lambda p, _: p[1].quantity,
    "currentQuantity": lambda p, _: p[1].current_quantity,
    "refundableQuantity": lambda p, _: p[1].current_quantity,
    "isGiftCard": lambda p, _: p[1].gift_card,
    "sellingPlan": _selling_plan,
    "originalUnitPriceSet": lambda p, _: p[0].money(p[1].unit_price),
    "originalTotalSet": lambda p, _: p[0].money(p[1].unit_price * p[1].quantity),
    "totalDiscountSet": lambda p, _: p[0].money(p[1].discount),
    "discountedTotalSet": lambda p, _: p[0].money(p[1].discounted),
    "discountedUnitPriceAfterAllDiscountsSet": lambda p, _: p[0].money(
        p[1].discounted // p[1].quantity
    ),
    "priceAfterAllDiscountsBeforeTaxesSet": _before_taxes,
}

TRANSACTION: dict[str, Getter] = {
    "id": gid("OrderTransaction"),
    "kind": lambda t, _: t.kind,
    "status": lambda t, _: t.status,
    "test": lambda t, _: t.test,
    "gateway": lambda t, _: t.gateway,
    "formattedGateway": lambda t, _: t.gateway.replace("_", " ").title(),
    "manualPaymentGateway": lambda t, _: t.manual,
    "createdAt": lambda t, _: instant(t.created_at),
    "processedAt": lambda t, _: instant(t.created_at),
    "amountSet": lambda t, _: Money(t.amount, t.currency),
    "fees": _fees,
}

REFUND: dict[str, Getter] = {
    "id": lambda p, _: f"gid://shopify/Refund/{p[1].id}",
    "legacyResourceId": lambda p, _: str(p[1].id),
    "note": lambda p, _: p[1].note,
    "createdAt": lambda p, _: instant(p[1].created_at),
    "processedAt": lambda p, _: instant(p[1].created_at),
    "updatedAt": lambda p, _: instant(p[1].created_at),
    "totalRefundedSet": lambda p, _: p[0].money(p[1].amount),
    "refundLineItems": _refund_lines,
    "refundShippingLines": _refund_shipping,
    "duties": _refund_duties,
    "transactions": lambda p, c: listed(p[1].transactions).page(c.args),
}

REFUND_LINE: dict[str, Getter] = {
    "id": lambda p, _: f"gid://shopify/RefundLineItem/{p[1].id}",
    "lineItem": lambda p, _: (p[0], p[1].line),
    "quantity": lambda p, _: p[1].quantity,
    "subtotalSet": lambda p, _: p[0].money(p[1].subtotal),
    "totalTaxSet": lambda p, _: p[0].money(p[1].tax),
}

REFUND_SHIPPING: dict[str, Getter] = {
    "id": lambda p, _: f"gid://shopify/RefundShippingLine/{p[1].id}",
    "subtotalAmountSet": lambda p, _: p[0].money(p[1].shipping),
    "taxAmountSet": lambda p, _: p[0].money(p[1].shipping_tax),
}
