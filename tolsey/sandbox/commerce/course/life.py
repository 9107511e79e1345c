"""What merchants and buyers do, and the deliveries each of their actions causes.

One action often concerns several topics; all of its deliveries share one event id.
"""

import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tolsey.sandbox.commerce.shop.orders import (
    Customer,
    Dispute,
    Fulfilment,
    Line,
    Order,
    Refund,
    RefundedLine,
    SellingPlan,
    Transaction,
    fee_of,
)
from tolsey.sandbox.commerce.shop.products import Product, Variant
from tolsey.sandbox.commerce.shop.state import Shop
from tolsey.sandbox.commerce.webhooks import bodies, order_bodies

OWN_PROCESSOR = "shopify_payments"
CHECKOUTS = ("web", "iphone", "android", "shopify_draft_order")
RESERVED = (*CHECKOUTS, "pos")
"""Sources that the platform names itself, and refuses to the orders that apps write."""
APP = "580111"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """What a buyer puts into the cart; amounts in minor units, tax for the whole quantity."""

    title: str = "Sandbox goods"
    unit_price: int = 2500
    quantity: int = 1
    discount: int = 0
    tax: int = 0
    gift_card: bool = False
    tip: bool = False
    plan: str | None = None
    variant: Variant | None = field(default=None, repr=False)


class Life(ABC):
    """The actions; the platform says when it is and how deliveries are sent."""

    @abstractmethod
    def shop(self, domain: str) -> Shop:
        """Give a shop's state."""

    @abstractmethod
    def now(self) -> datetime:
        """Tell the platform's time."""

    @abstractmethod
    def deliver(
        self,
        domain: str,
        topic: str,
        body: Mapping[str, Any] | bytes,
        *,
        event_id: str | None = None,
    ) -> int:
        """Queue a delivery for every subscription to the topic."""

    def place_order(
        self,
        domain: str,
        items: Sequence[Item] = (Item(),),
        *,
        email: str | None = "buyer@example.com",
        paid: bool = True,
        gateway: str = "shopify_payments",
        manual: bool = False,
        test: bool = False,
        shipping: int = 0,
        duties: int = 0,
        source_name: str = "web",
        processed_at: datetime | None = None,
        landing_site: str | None = None,
        referring_site: str | None = None,
    ) -> Order:
        """Let a buyer order: `orders/create`, `orders/updated`, and `orders/paid` when it was paid."""
        shop, now, event = self.shop(domain), self.now(), str(uuid.uuid4())
        customer = self._buyer(shop, email, event)
        order = Order(
            id=next(shop.ids),
            number=shop.next_number,
            currency=shop.spec.currency,
            created_at=now,
            processed_at=processed_at or now,
            updated_at=now,
            lines=[_line(shop, item) for item in items],
            shipping=shipping,
            duties=duties,
            test=test,
            source_name=source_name,
            checkout_token=uuid.uuid4().hex if source_name in CHECKOUTS else None,
            customer=customer,
            landing_site=landing_site,
            referring_site=referring_site,
        )
        # The platform's own processor asks a fee.
        is_charged = gateway == OWN_PROCESSOR and not test and not manual
        order.transactions.append(
            Transaction(
                id=next(shop.ids),
                kind="SALE",
                status="SUCCESS" if paid else "PENDING",
                amount=order.total,
                gateway=gateway,
                created_at=now,
                test=test,
                manual=manual,
                currency=order.currency,
                fee=fee_of(order.total) if is_charged else 0,
            )
        )
        shop.add_order(order)
        topics = ["orders/create", "orders/updated", *(["orders/paid"] if paid else [])]
        self._tell(shop, order, topics, event)
        for item in items:
            if item.variant is not None:
                self._move_stock(shop, item.variant, -item.quantity, event)
        return order

    def write_order(
        self,
        domain: str,
        items: Sequence[Item] = (Item(),),
        *,
        gateway: str = OWN_PROCESSOR,
        status: str = "SUCCESS",
        test: bool = False,
        source_name: str = APP,
        processed_at: datetime | None = None,
    ) -> Order:
        """Let an app of the merchant write an order (`orderCreate`): `orders/create`.

        It may say what it likes of gateway, status and time, and no money moves. It has no
        checkout, asks no fee, and the platform's own source names are not given to it.
        """
        shop, now = self.shop(domain), self.now()
        order = Order(
            id=next(shop.ids),
            number=shop.next_number,
            currency=shop.spec.currency,
            created_at=now,
            processed_at=processed_at or now,
            updated_at=now,
            lines=[_line(shop, item) for item in items],
            test=test,
            source_name=APP if source_name in RESERVED else source_name,
        )
        order.transactions.append(
            Transaction(
                id=next(shop.ids),
                kind="SALE",
                status=status,
                amount=order.total,
                gateway=gateway,
                created_at=now,
                test=test,
                currency=order.currency,
            )
        )
        shop.add_order(order)
        self._tell(shop, order, ["orders/create", "orders/updated"])
        return order

    def dispute_order(self, domain: str, order_id: int, status: str = "NEEDS_RESPONSE") -> Order:
        """Let the buyer's bank ask the money back, or end that: `orders/updated`."""
        shop, order = self._order(domain, order_id)
        if order.disputes:
            order.disputes[0].status = status
        else:
            order.disputes.append(Dispute(next(shop.ids), status))
        self._tell(shop, order, ["orders/updated"])
        return order

    def exchange_order(
        self, domain: str, order_id: int, returned: Mapping[int, int], items: Sequence[Item]
    ) -> Order:
        """Take units back and give others for them: `refunds/create`, `orders/updated`.

        What came back pays for what goes out, through a gateway that moves no money.
        """
        shop, order = self._order(domain, order_id)
        event = str(uuid.uuid4())
        self._refund(shop, order, 0, returned, restock="RETURN", event=event)
        added = [_line(shop, item) for item in items]
        order.lines.extend(added)
        order.transactions.append(
            Transaction(
                id=next(shop.ids),
                kind="SALE",
                status="SUCCESS",
                amount=sum(line.discounted for line in added),
                gateway="exchange-credit",
                created_at=self.now(),
                currency=order.currency,
            )
        )
        self._tell(shop, order, ["orders/updated"], event)
        return order

    def pay_order(self, domain: str, order_id: int) -> Order:
        """Receive the money of a pending order: `orders/paid`, `orders/updated`."""
        shop, order = self._order(domain, order_id)
        for transaction in order.transactions:
            if transaction.status == "PENDING":
                transaction.status = "SUCCESS"
        self._tell(shop, order, ["orders/paid", "orders/updated"])
        return order

    def update_order(
        self, domain: str, order_id: int, *, note: str | None = None, tags: tuple[str, ...] = ()
    ) -> Order:
        """Change what does not touch money: `orders/updated`."""
        shop, order = self._order(domain, order_id)
        order.note, order.tags = note or order.note, tags or order.tags
        self._tell(shop, order, ["orders/updated"])
        return order

    def cancel_order(self, domain: str, order_id: int, *, reason: str = "customer") -> Order:
        """Cancel and pay back: `orders/cancelled`, `orders/updated`, `refunds/create`."""
        shop, order = self._order(domain, order_id)
        event = str(uuid.uuid4())
        order.cancelled_at, order.cancel_reason = self.now(), reason
        owed = order.received - order.refunded
        everything = {line.id: line.current_quantity for line in order.lines}
        if owed > 0:
            self._refund(shop, order, owed, everything, restock="CANCEL", event=event)
        else:
            for line in order.lines:
                line.returned = line.quantity
        self._tell(shop, order, ["orders/cancelled", "orders/updated"], event)
        return order

    def refund_order(
        self,
        domain: str,
        order_id: int,
        *,
        amount: int | None = None,
        returned: Mapping[int, int] | None = None,
        note: str | None = None,
        shipping: int = 0,
        status: str = "SUCCESS",
    ) -> Refund:
        """Pay back and take units back: `refunds/create`, `orders/updated`.

        `returned` maps line ids to units; without an amount their value is paid back, and
        without either everything that was received. It is under way while its status is PENDING.
        """
        shop, order = self._order(domain, order_id)
        event = str(uuid.uuid4())
        back = dict(returned or {})
        if amount is None:
            value = sum(sum(worth(order, line, back.get(line.id, 0))) for line in order.lines)
            amount = value if back else order.received - order.refunded
        refund = self._refund(
            shop,
            order,
            amount,
            back,
            restock="RETURN",
            event=event,
            note=note,
            shipping=shipping,
            status=status,
        )
        self._tell(shop, order, ["orders/updated"], event)
        return refund

    def fulfil_order(self, domain: str, order_id: int, quantity: int | None = None) -> Order:
        """Send so many units, or all that are left, line by line; see `send_lines`."""
        order = self.shop(domain).orders[order_id]
        wanted, lines = order.quantity if quantity is None else quantity, dict[int, int]()
        for line in order.lines:
            if units := min(wanted - sum(lines.values()), order.unsent(line)):
                lines[line.id] = units
        self.send_lines(domain, order_id, lines)
        return order

    def send_lines(
        self,
        domain: str,
        order_id: int,
        lines: Mapping[int, int],
        tracking: Mapping[str, str | None] | None = None,
        *,
        told: bool = False,
    ) -> Fulfilment:
        """Send a parcel of units by line: `fulfillments/create` and the order's new state."""
        shop, order = self._order(domain, order_id)
        event = str(uuid.uuid4())
        sent = Fulfilment(next(shop.ids), self.now(), lines, **(tracking or {}), told=int(told))
        order.fulfilments.append(sent)
        units = sum(lines.values())
        body = order_bodies.fulfilment_body(shop, order, sent.id, units, self.now())
        self.deliver(domain, "fulfillments/create", body, event_id=event)
        whole = order.fulfillment_status == "FULFILLED"
        topic = "orders/fulfilled" if whole else "orders/partially_fulfilled"
        self._tell(shop, order, [topic, "orders/updated"], event)
        return sent

    def track_parcel(self, domain: str, order_id: int) -> None:
        """Learn something about a parcel: `fulfillments/update`."""
        shop, order = self._order(domain, order_id)
        body = order_bodies.fulfilment_body(shop, order, next(shop.ids), 1, self.now())
        self.deliver(domain, "fulfillments/update", body)

    def edit_order(self, domain: str, order_id: int, items: Sequence[Item]) -> Order:
        """Add lines after the sale: `orders/edited`, `orders/updated`."""
        shop, order = self._order(domain, order_id)
        event = str(uuid.uuid4())
        added = [_line(shop, item) for item in items]
        order.lines.extend(added)
        body = order_bodies.edit_body(shop, order, next(shop.ids), added, self.now())
        self.deliver(domain, "orders/edited", body, event_id=event)
        self._tell(shop, order, ["orders/updated"], event)
        return order

    def delete_order(self, domain: str, order_id: int) -> None:
        """Delete an order: `orders/delete`."""
        shop, order = self._order(domain, order_id)
        del shop.orders[order.id]
        shop.revision += 1
        self.deliver(domain, "orders/delete", {"id": order.id})

    def save_product(self, domain: str, product: Product) -> None:
        """Add or change a product: `products/create` or `products/update`."""
        shop = self.shop(domain)
        topic = "products/update" if product.id in shop.products else "products/create"
        product.updated_at = self.now()
        shop.products[product.id] = product
        self.deliver(domain, topic, bodies.product_body(shop, product))

    def delete_product(self, domain: str, product_id: int) -> None:
        """Delete a product: `products/delete`."""
        del self.shop(domain).products[product_id]
        self.deliver(domain, "products/delete", {"id": product_id})

    def set_stock(self, domain: str, variant: Variant, available: int) -> None:
        """Count the stock: `inventory_levels/update`."""
        shop = self.shop(domain)
        self._move_stock(shop, variant, available - variant.available, str(uuid.uuid4()))

    def update_customer(self, domain: str, customer_id: int, *, email: str | None) -> Customer:
        """Change a customer's address: `customers/update`."""
        shop = self.shop(domain)
        customer = shop.customers[customer_id]
        customer.email, customer.updated_at = email, self.now()
        self.deliver(domain, "customers/update", bodies.customer_body(shop, customer))
        return customer

    def delete_customer(self, domain: str, customer_id: int) -> None:
        """Delete a customer: `customers/delete`."""
        customer = self.shop(domain).customers.pop(customer_id)
        self.deliver(domain, "customers/delete", bodies.gone_customer_body(customer))

    def publish_theme(self, domain: str, name: str = "Dawn") -> None:
        """Show another theme: `themes/publish`."""
        shop = self.shop(domain)
        body = bodies.theme_body(shop, next(shop.ids), name, self.now())
        self.deliver(domain, "themes/publish", body)

    def add_domain(self, domain: str, host: str) -> None:
        """Connect a domain and make it the primary one: `domains/create`."""
        shop = self.shop(domain)
        shop.primary_domain = host
        self.deliver(domain, "domains/create", bodies.domain_body(690_933_842, host))

    def _order(self, domain: str, order_id: int) -> tuple[Shop, Order]:
        shop = self.shop(domain)
        return shop, shop.orders[order_id]

    def _tell(
        self, shop: Shop, order: Order, topics: Sequence[str], event: str | None = None
    ) -> None:
        """Deliver the order's new state under every topic it concerns."""
        order.updated_at = self.now()
        shop.revision += 1
        body = order_bodies.order_body(shop, order)
        event = event or str(uuid.uuid4())
        for topic in topics:
            self.deliver(shop.domain, topic, body, event_id=event)

    def _buyer(self, shop: Shop, email: str | None, event: str) -> Customer:
        known = (c for c in shop.customers.values() if c.email == email and email is not None)
        customer = next(known, None)
        if customer is None:
            now = self.now()
            customer = Customer(
                next(shop.ids), email, "Sandy", "Box", now, now, currency=shop.spec.currency
            )
            shop.customers[customer.id] = customer
            body = bodies.customer_body(shop, customer)
            self.deliver(shop.domain, "customers/create", body, event_id=event)
        customer.orders += 1
        return customer

    def _move_stock(self, shop: Shop, variant: Variant, change: int, event: str) -> None:
        variant.available += change
        body = bodies.stock_body(shop, variant, self.now())
        self.deliver(shop.domain, "inventory_levels/update", body, event_id=event)

    def _refund(
        self,
        shop: Shop,
        order: Order,
        amount: int,
        returned: Mapping[int, int],
        *,
        restock: str,
        event: str,
        note: str | None = None,
        shipping: int = 0,
        status: str = "SUCCESS",
    ) -> Refund:
        now, paid = self.now(), order.transactions[0]
        refund = Refund(
            next(shop.ids), now, amount, note, currency=order.currency, shipping=shipping
        )
        for line in order.lines:
            units = returned.get(line.id, 0)
            if units > line.current_quantity:
                raise ValueError("more units come back than were sold")
            if units:
                value, tax = worth(order, line, units)
                refund.lines.append(RefundedLine(next(shop.ids), line, units, value, tax, restock))
                line.returned += units
        movement = Transaction(
            id=next(shop.ids),
            kind="REFUND",
            status=status,
            amount=amount,
            gateway=paid.gateway,
            created_at=now,
            test=paid.test,
            manual=paid.manual,
            parent_id=paid.id,
            currency=order.currency,
        )
        refund.transactions.append(movement)
        order.transactions.append(movement)
        order.refunds.append(refund)
        shop.refunds[refund.id] = (order, refund)
        order.updated_at = now
        body = order_bodies.refund_body(shop, order, refund)
        self.deliver(shop.domain, "refunds/create", body, event_id=event)
        return refund


def worth(order: Order, line: Line, units: int) -> tuple[int, int]:
    """Value and added tax of some units of a line."""
    value = line.discounted * units // line.quantity
    tax = 0 if order.taxes_included else line.tax * units // line.quantity
    return value, tax


def _line(shop: Shop, item: Item) -> Line:
    variant = item.variant
    return Line(
        id=next(shop.ids),
        title=item.title,
        unit_price=variant.price if variant else item.unit_price,
        quantity=item.quantity,
        discount=item.discount,
        tax=item.tax,
        sku=variant.sku if variant else "",
        gift_card=item.gift_card,
        tip=item.tip,
        selling_plan=SellingPlan(next(shop.ids), item.plan) if item.plan else None,
        product_id=variant.product.id if variant and variant.product else None,
        variant_id=variant.id if variant else None,
    )
