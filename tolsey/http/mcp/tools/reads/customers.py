"""Buyers: as this store's pseudonyms, with what they bought, and never who they are."""

from datetime import datetime
from typing import Annotated, Final, Literal

import orjson
from pydantic import Field

from tolsey.actors.refusals import NotFound
from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.tools.answers import DecimalMoney, Pseudonym, known_money
from tolsey.http.mcp.tools.building import ToolAnswer, ToolArguments, reads
from tolsey.http.mcp.tools.pages import PageArguments, Pages
from tolsey.http.mcp.tools.reads.facts import FactsAnswer, FactsPart, FactsTools
from tolsey.storage.database import Row
from tolsey.storage.reports import customers

SCOPES: Final = frozenset({"customers:read"})


class CustomerQuery(PageArguments):
    """In which order."""

    order_by: Annotated[
        Literal["customer", "orders"], Field(description="orders: most first, buyers only.")
    ] = "customer"


class CustomerId(ToolArguments):
    """Which buyer."""

    customer: Pseudonym


class Customer(ToolAnswer):
    """A buyer; `cohort` is the month of the first order."""

    customer: str
    orders: int
    refunded_orders: int
    spent: Annotated[list[DecimalMoney], Field(description="Lifetime value by currency.")]
    first_order_at: datetime | None
    last_order_at: datetime | None
    cohort: str | None


class CohortQuery(ToolArguments):
    """How many."""

    months: Annotated[int, Field(ge=1, le=60, description="The latest so many with buyers.")] = 12


class Cohort(ToolAnswer):
    """Those whose first order is of one month, in UTC: `returning_buyers` ordered again."""

    month: str
    buyers: int
    returning_buyers: int
    orders: int
    spent: Annotated[list[DecimalMoney], Field(description="Lifetime value by currency.")]


class CohortReport(FactsAnswer):
    """Cohorts, the latest first."""

    cohorts: list[Cohort]


class CustomerTools(FactsTools):
    """Reads buyers for whoever the gate admitted."""

    by_pseudonym = Pages("list_customers", str)
    busiest = Pages("list_customers/orders", int, str)

    @reads(
        "list_customers",
        "List customers",
        "Lists buyers as pseudonyms with order counts, lifetime value and cohort. Names"
        " and contacts do not exist here.",
        scopes=SCOPES,
    )
    async def list(self, principal: Principal, asked: CustomerQuery) -> FactsPart[Customer]:
        """List buyers."""
        database = self._reports(principal)
        shop, wanted = principal.shop_key, asked.limit + 1
        if asked.order_by == "orders":
            pages, after = self.busiest, self.busiest.after(asked)
            busiest = await customers.busiest(database, shop, after, wanted)
            found = [row["pseudonym"] for row in busiest]
        else:
            pages, key = self.by_pseudonym, self.by_pseudonym.after(asked)
            found = await customers.by_pseudonym(database, shop, key[0] if key else "", wanted)
        counted = await customers.counts(database, shop, found)

        def key_of(row: Row) -> tuple[int | str, ...]:
            number = (row["orders"],) if pages is self.busiest else ()
            return (*number, row["pseudonym"])

        part = pages.part(counted, asked, key=key_of, show=_customer)
        return FactsPart[Customer].read(part, facts_since=await self._orders_since(principal))

    @reads(
        "get_customer",
        "Get a customer",
        "Reads what one pseudonymous buyer bought.",
        scopes=SCOPES,
    )
    async def get(self, principal: Principal, asked: CustomerId) -> Customer:
        """Read one buyer."""
        database = self._reports(principal)
        shop = principal.shop_key
        if not await customers.is_known(database, shop, asked.customer):
            raise NotFound(
                "This customer doesn't exist, or you don't have access to it. Check the id."
            )
        (row,) = await customers.counts(database, shop, [asked.customer])
        return _customer(row)

    @reads(
        "get_customer_cohorts",
        "Report cohorts",
        "Adds up buyers by the month of their first order: how many came back, and what all"
        " of them spent since.",
        scopes=SCOPES,
    )
    async def cohorts(self, principal: Principal, asked: CohortQuery) -> CohortReport:
        """Add up buyers."""
        rows = await customers.cohorts(self._reports(principal), principal.shop_key, asked.months)
        return CohortReport(
            facts_since=await self._since(principal),
            cohorts=[
                Cohort.read(row, month=f"{row['month']:%Y-%m}", spent=_spent(row)) for row in rows
            ],
        )


def _spent(row: Row) -> list[DecimalMoney]:
    spent: list[tuple[str, int]] = orjson.loads(row["spent"])
    return [known_money(minor, currency) for currency, minor in spent]


def _customer(row: Row) -> Customer:
    first: datetime | None = row["first_order_at"]
    return Customer.read(
        row,
        customer=row["pseudonym"],
        spent=_spent(row),
        cohort=first.strftime("%Y-%m") if first else None,
    )
