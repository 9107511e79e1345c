"""What a shop is given (`ShopSpec`) and what the platform keeps of it (`Shop`)."""

import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tolsey.sandbox.commerce.shop.bucket import Bucket
from tolsey.sandbox.commerce.shop.bulk import BulkOperation
from tolsey.sandbox.commerce.shop.content import Collection, ContentPage
from tolsey.sandbox.commerce.shop.discounts import Discount
from tolsey.sandbox.commerce.shop.orders import FIRST_ID, Customer, Order, Refund, new_ids
from tolsey.sandbox.commerce.shop.products import Product
from tolsey.sandbox.commerce.shop.setup import Setup
from tolsey.sandbox.commerce.shop.subscriptions import Subscription

TOKEN_LIFETIME_SECONDS = 86_399
ORDER_HORIZON = timedelta(days=60)
ALL_SCOPES = (
    "read_orders",
    "read_all_orders",
    "read_products",
    "read_inventory",
    "read_customers",
    "read_fulfillments",
    "read_themes",
)
WRITE_SCOPES = (
    "write_products",
    "write_inventory",
    "write_orders",
    "write_merchant_managed_fulfillment_orders",
    "write_discounts",
    "write_content",
)
"""What an app needs beside, to change what it reads."""
LAUNCH_SCOPES = (
    "read_locations",
    "read_publications",
    "read_legal_policies",
    "read_shopify_payments_accounts",
    "read_themes",
    "write_files",
    "write_locations",
    "write_shipping",
    "write_markets",
    "read_markets",
    "write_publications",
    "write_online_store_navigation",
    "write_legal_policies",
    "write_themes",
    "write_customers",
    "write_privacy_settings",
    "write_draft_orders",
)
"""What an app needs beside, to set a shop up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShopSpec:
    """How a shop starts its life on the stand-in platform."""

    domain: str
    client_id: str = "sandbox-client"
    client_secret: str = field(default="sandbox-secret", repr=False)
    currency: str = "USD"
    scopes: tuple[str, ...] = ALL_SCOPES
    created_at: datetime = datetime(2024, 1, 1, tzinfo=UTC)
    name: str = "Sandbox shop"
    email: str = "owner@example.com"
    country: str = "US"
    timezone: str = "UTC"
    plan: str = "Basic"
    plan_name: str = "basic"
    partner_development: bool = False
    primary_domain: str | None = None
    installed: bool = True
    permitted: bool = True
    frozen: bool = False
    approved_for_customer_data: bool = True
    maximum_points: float = 2000.0
    restore_rate: float = 100.0
    orders: Iterable[Order] = ()
    products: Iterable[Product] = ()


@dataclass(slots=True)
class Token:
    """An access token and the moment it dies."""

    text: str = field(repr=False)
    expires_at: datetime


@dataclass(slots=True)
class Shop:
    """A shop's whole state on the platform."""

    spec: ShopSpec
    id: int
    bucket: Bucket
    secrets: list[str] = field(repr=False)
    scopes: tuple[str, ...]
    installed: bool
    permitted: bool
    frozen: bool
    updated_at: datetime
    plan: str
    plan_name: str
    partner_development: bool
    primary_domain: str
    email: str
    """Of whoever owns it now."""
    tokens: dict[str, Token] = field(default_factory=dict, repr=False)
    orders: dict[int, Order] = field(default_factory=dict, repr=False)
    refunds: dict[int, tuple[Order, Refund]] = field(default_factory=dict, repr=False)
    customers: dict[int, Customer] = field(default_factory=dict, repr=False)
    products: dict[int, Product] = field(default_factory=dict, repr=False)
    subscriptions: dict[int, Subscription] = field(default_factory=dict)
    bulk_operations: dict[int, BulkOperation] = field(default_factory=dict)
    discounts: dict[str, Discount] = field(default_factory=dict)
    """By their codes in small letters."""
    collections: dict[int, Collection] = field(default_factory=dict)
    pages: dict[int, ContentPage] = field(default_factory=dict)
    setup: Setup = field(default_factory=Setup, repr=False)
    ids: Iterator[int] = field(default_factory=new_ids, repr=False)
    revision: int = 0
    idempotent: dict[str, tuple[Any, Mapping[str, Any] | Exception]] = field(default_factory=dict)
    """What was asked under each idempotency key, and what was answered."""
    next_number: int = 1001

    @property
    def domain(self) -> str:
        """The permanent myshopify.com name."""
        return self.spec.domain

    @property
    def signing_secret(self) -> str:
        """The secret webhooks are signed with: the oldest that was not revoked."""
        return self.secrets[0]

    def issue_token(self, now: datetime, seconds: int = TOKEN_LIFETIME_SECONDS) -> Token:
        """Give out a fresh access token."""
        token = Token("shpat_" + secrets.token_hex(16), now + timedelta(seconds=seconds))
        self.tokens[token.text] = token
        return token

    def accepts(self, token: str, now: datetime) -> bool:
        """Tell whether a token still opens the shop."""
        known = self.tokens.get(token)
        return self.installed and known is not None and now < known.expires_at

    def grants(self, scope: str) -> bool:
        """Tell whether the app holds a scope; writing implies reading."""
        return scope in self.scopes or scope.replace("read_", "write_", 1) in self.scopes

    def add_order(self, order: Order) -> None:
        """Keep an order and its customer."""
        self.orders[order.id] = order
        self.refunds.update((refund.id, (order, refund)) for refund in order.refunds)
        self.next_number = max(self.next_number, order.number + 1)
        if order.customer is not None:
            self.customers.setdefault(order.customer.id, order.customer)
        self.revision += 1

    def oldest_readable(self, now: datetime) -> datetime:
        """Tell how far back the app may read: 60 days unless it holds `read_all_orders`."""
        if self.grants("read_all_orders"):
            return datetime.min.replace(tzinfo=UTC)
        return now - ORDER_HORIZON

    def visible_orders(self, now: datetime) -> list[Order]:
        """Give the orders the app may read."""
        oldest = self.oldest_readable(now)
        return [order for order in self.orders.values() if order.created_at >= oldest]


def open_shop(spec: ShopSpec, number: int, now: datetime) -> Shop:
    """Make the state of a new shop."""
    shop = Shop(
        spec=spec,
        ids=new_ids(FIRST_ID + number * 10**12),
        id=548_380_000 + number,
        bucket=Bucket(spec.maximum_points, spec.restore_rate, now),
        secrets=[spec.client_secret],
        scopes=tuple(spec.scopes),
        installed=spec.installed,
        permitted=spec.permitted,
        frozen=spec.frozen,
        updated_at=spec.created_at,
        plan=spec.plan,
        plan_name=spec.plan_name,
        partner_development=spec.partner_development,
        primary_domain=spec.primary_domain or spec.domain,
        email=spec.email,
    )
    for order in spec.orders:
        shop.add_order(order)
    for product in spec.products:
        shop.products[product.id] = product
    return shop
