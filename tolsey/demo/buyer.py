"""The newcomer as a customer: a plan, credits, a mistaken purchase, a disputed one, the next month."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tolsey.demo.browser import Browser, send_form
from tolsey.demo.money import usd
from tolsey.demo.telling import Unexpected, until
from tolsey.sandbox.payments.processor import Processor

PLAN, CADENCE = "pro", "monthly"
PURCHASE_CENTS, MISTAKE_CENTS = 50_00, 20_00
MONTH_DAYS = 31


@dataclass
class DemoBuyer:
    """Somebody with an organization and a card, and the operator who may give money back."""

    browser: Browser
    operator: Browser
    processor: Processor
    organization_id: str
    payments: list[str] = field(default_factory=list)
    """The payments of the credits that were bought, oldest first."""

    async def subscribe(self) -> str:
        """Buy a plan on the processor's page."""
        page = await self._post("/api/payments/checkout", plan=PLAN, cadence=CADENCE)
        await send_form(page["url"], action="pay", terms="yes")
        grant = await until(partial(self._grant, "allowance"), "the plan's allowance")
        return f"Pro is paid, and its invoice granted {usd(grant['amount'])} of credits"

    async def buy_credits(self) -> str:
        """Buy credits that last for a year."""
        before = await self.balance()
        await self._buy(PURCHASE_CENTS)
        return f"{usd(before)} became {usd(await self.balance())}"

    async def refund(self) -> str:
        """Buy by mistake, and have an operator give the money back."""
        payment = await self._buy(MISTAKE_CENTS)
        bought = await self.balance()
        await self.operator.post(
            "/api/admin/refunds",
            organizationId=self.organization_id,
            paymentRef=payment,
            reason="bought by mistake",
        )
        left = await self._until(lambda balance: balance < bought, "the refund")
        return f"nothing of it was used, so {usd(bought)} became {usd(left)}"

    async def dispute(self) -> str:
        """Let the bank take a purchase back, and give it back."""
        before = await self.balance()
        opened = self.processor.open_dispute(self._charge(self.payments[0]))
        taken = await self._until(lambda balance: balance < before, "the clawback")
        self.processor.close_dispute(opened["id"], "won")
        given = await self._until(lambda balance: balance > taken, "the end of the dispute")
        return f"{usd(before)} became {usd(taken)}, and when it was won {usd(given)}"

    async def renew(self) -> str:
        """Move the processor's clock a month on, so that the plan is paid again."""
        old = await self._grant("allowance")
        self.processor.advance(days=MONTH_DAYS)
        new = await until(
            partial(self._grant, "allowance", but=old["id"] if old else ""), "the renewal"
        )
        left = usd(old["remaining"]) if old else "nothing"
        return f"{left} of last month's credits ended, {usd(new['amount'])} are there anew"

    async def look_back(self) -> str:
        """Add up what the ledger says of all this."""
        listed = await self.browser.get(
            "/api/credits/ledger", organizationId=self.organization_id, limit="200"
        )
        entries = listed["items"]
        total = sum(entry["amount"] for entry in entries)
        numbers = [entry["seq"] for entry in entries]
        if total != await self.balance() or numbers != [*range(len(entries), 0, -1)]:
            raise Unexpected(f"the ledger does not add up: {numbers} make {usd(total)}")
        return f"{len(entries)} entries without a gap add up to the balance of {usd(total)}"

    async def balance(self) -> int:
        """Tell the balance in micro-USD."""
        found: int = (await self._credits())["balance"]
        return found

    async def _buy(self, cents: int) -> str:
        """Buy credits, wait until they are there, and name the payment."""
        known = {grant["id"] for grant in (await self._credits())["grants"]}
        page = await self._post(
            "/api/credits/purchase", amount={"amount": cents, "currency": "USD"}
        )
        await send_form(page["url"], action="pay", terms="yes")
        grant = await until(partial(self._new_purchase, known), "the purchase")
        payment: str = grant["reference"]
        self.payments.append(payment)
        return payment

    async def _new_purchase(self, known: set[str]) -> dict[str, Any] | None:
        grants = (await self._credits())["grants"]
        return next((g for g in grants if g["kind"] == "purchase" and g["id"] not in known), None)

    async def _grant(self, kind: str, but: str = "") -> dict[str, Any] | None:
        grants = (await self._credits())["grants"]
        return next((g for g in grants if g["kind"] == kind and g["id"] != but), None)

    async def _until(self, fits: Callable[[int], bool], what: str) -> int:
        async def look() -> int | None:
            balance = await self.balance()
            return balance if fits(balance) else None

        return await until(look, what)

    def _charge(self, payment: str) -> str:
        charge: str = self.processor.platform.books.get("payment_intent", payment)["latest_charge"]
        return charge

    async def _credits(self) -> dict[str, Any]:
        return await self.browser.get("/api/credits", organizationId=self.organization_id)

    async def _post(self, path: str, **body: Any) -> dict[str, Any]:
        return await self.browser.post(path, organizationId=self.organization_id, **body)
