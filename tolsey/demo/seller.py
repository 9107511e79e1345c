"""The newcomer as a seller: from the account to the badge."""

import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tolsey.demo.browser import Browser, send_form
from tolsey.demo.telling import until
from tolsey.http.layout.words import money
from tolsey.sandbox.commerce.shop.state import Shop


@dataclass
class Seller:
    """Somebody who signs up and offers a business."""

    browser: Browser
    email: str = field(default_factory=lambda: f"seller+{datetime.now(UTC):%H%M%S}@tolsey.example")
    password: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    organization_id: str = ""
    store_id: str = ""
    listing_id: str = ""
    slug: str = ""
    payments_key: str = ""

    @property
    def agents_address(self) -> str:
        """Give the address at which agents call the store."""
        return f"{str(self.browser.client.base_url).rstrip('/')}/api/mcp/v1/{self.store_id}"

    async def sign_up(self) -> str:
        """Make an account with an organization."""
        made = await self.browser.post(
            "/api/auth/signup",
            email=self.email,
            password=self.password,
            organizationName="The Demo Company",
        )
        self.organization_id = made["organization"]["id"]
        return self.email

    async def connect(self, shop: Shop) -> str:
        """Open a store and connect it with the app's credentials."""
        store = await self.browser.post(
            "/api/stores", organizationId=self.organization_id, name="The Demo Shop"
        )
        self.store_id = store["id"]
        answer = await self.browser.post(
            "/api/integrations/commerce/custom-app",
            storeId=self.store_id,
            shopDomain=shop.spec.domain,
            clientId=shop.spec.client_id,
            clientSecret=shop.spec.client_secret,
        )
        return f"{shop.spec.domain} is {answer['connection']['status']}"

    async def open_payouts(self) -> str:
        """Say at the payment processor who is paid; nothing is offered for sale before."""
        opened = await self.browser.post("/api/payouts/account")
        await send_form(opened["url"], action="submit")
        await until(self._verified_payouts, "the verification of the payout account")
        return f"{opened['account']['id']} is verified"

    async def _verified_payouts(self) -> bool | None:
        account = await self.browser.get("/api/payouts/account")
        return account["state"] == "verified" or None

    async def publish(self) -> str:
        """Offer the business."""
        listing = await self.browser.post(
            "/api/sell/listings",
            organizationId=self.organization_id,
            storeId=self.store_id,
            title="A demo shop with real-looking customers",
            teaser="Sixty days of orders, one busy seller.",
            category="fashion",
            askingPrice={"amount": 12_000_000, "currency": "USD"},
        )
        self.listing_id, self.slug = listing["id"], listing["slug"]
        published = await self.browser.post(f"/api/sell/listings/{self.listing_id}/publish")
        return f"{self.slug} is {published['status']}"

    async def verify(self, shop: Shop) -> str:
        """Paste the credentials into the listing and wait for the first sync."""
        await self.browser.post(
            f"/api/sell/listings/{self.listing_id}/verify/commerce",
            shopDomain=shop.spec.domain,
            clientId=shop.spec.client_id,
            clientSecret=shop.spec.client_secret,
        )
        return await until(self._verified, "the first sync")

    async def _verified(self) -> str | None:
        answer = await self.browser.get(f"/api/sell/listings/{self.listing_id}")
        verification = answer["verification"]
        if verification["state"] not in {"verified", "verified_new"}:
            return None
        amount = money(verification["revenue30d"], verification["currency"])
        return f"{verification['state']}, {amount} in 30 days"

    async def corroborate(self, key: str) -> str:
        """Prove the revenue by the payment processor, too; the two are never added."""
        self.payments_key = key
        path = f"/api/sell/listings/{self.listing_id}/verify/payments"
        await self.browser.post(path, restrictedKey=key)
        return await until(self._corroborated, "the reading of the payments")

    async def _corroborated(self) -> str | None:
        answer = await self.browser.get(f"/api/sell/listings/{self.listing_id}")
        found = answer["verification"]["corroboration"]
        if found is None or found["differencePercent"] is None:
            return None
        amount = money(found["revenue30d"], found["currency"])
        return f"{amount} in 30 days, {found['differencePercent']} % apart"

    async def badge(self) -> str:
        """Look at what the public sees."""
        answer = await self.browser.client.get(f"/api/public/listings/{self.slug}/badge.svg")
        answer.raise_for_status()
        return f"{len(answer.content)} bytes of SVG, ETag {answer.headers['ETag']}"
