"""What can be read at an address: the store, its limits, and each order and product."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeVar

from tolsey.actors.refusals import NotFound
from tolsey.actors.store.launch.playbook import PLAYBOOK
from tolsey.http.mcp.call import ToolCall
from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.registry import Contents, OfferedResource, Template
from tolsey.http.mcp.server import MOST_COMPLETIONS
from tolsey.http.mcp.tools.building import Nothing, ToolAnswer
from tolsey.http.mcp.tools.reads import catalog as products
from tolsey.http.mcp.tools.reads import money
from tolsey.http.mcp.tools.reads import orders as sold
from tolsey.http.mcp.tools.reads import store as stores
from tolsey.http.mcp.tools.shop_words import written
from tolsey.http.web.context import Service
from tolsey.storage.reports import catalog, orders

JSON: Final = "application/json"
LAUNCH: Final = frozenset({"launch:read"})
PROPOSED: Final = MOST_COMPLETIONS + 1
LONGEST_TYPED: Final = 100

Asked = TypeVar("Asked")


class Resources:
    """Offers resources over the same functions as the tools."""

    def __init__(self, service: Service) -> None:
        self._reports = service.reports
        self._stores = stores.StoreTools(service)
        self._money = money.MoneyTools(service)
        self._orders = sold.OrderTools(service)
        self._products = products.CatalogTools(service)

    def offered(self) -> Sequence[OfferedResource | Template]:
        """List them."""
        return [
            OfferedResource(
                "store://summary",
                "summary",
                "The store",
                "What the store is, and how it is connected.",
                JSON,
                self.summary,
                stores.SCOPES,
            ),
            OfferedResource(
                "store://policies/limits",
                "limits",
                "Limits",
                "What the plan allows, and how many calls are left.",
                JSON,
                self.limits,
                money.SCOPES,
            ),
            OfferedResource(
                "store://launch/playbook",
                "playbook",
                "The launch playbook",
                "What a launch goes by: milestones, what each depends on, and what it takes.",
                JSON,
                self.playbook,
                LAUNCH,
            ),
            Template(
                "store://order/{id}",
                "order",
                "An order",
                "One order with its refunds and parcels.",
                JSON,
                self.order,
                sold.SCOPES,
                {"id": self.order_ids},
            ),
            Template(
                "store://product/{id}",
                "product",
                "A product",
                "One product with its variants.",
                JSON,
                self.product,
                products.SCOPES,
                {"id": self.product_ids},
            ),
        ]

    async def summary(self, call: ToolCall) -> Contents:
        """Read the store."""
        return await _read(self._stores.summary, call.principal, Nothing())

    async def limits(self, call: ToolCall) -> Contents:
        """Read the limits."""
        return await _read(self._money.limits, call.principal, Nothing())

    async def playbook(self, call: ToolCall) -> Contents:
        """Read the playbook."""
        del call
        return {"text": PLAYBOOK.text}

    async def order(self, call: ToolCall, variables: Mapping[str, str]) -> Contents | None:
        """Read an order; None when there is none of that id."""
        asked = sold.OrderId.model_construct(order_id=variables["id"])
        return await _found(self._orders.get, call.principal, asked)

    async def product(self, call: ToolCall, variables: Mapping[str, str]) -> Contents | None:
        """Read a product; None when there is none of that id."""
        asked = products.ProductId.model_construct(product_id=variables["id"])
        return await _found(self._products.get, call.principal, asked)

    async def order_ids(self, call: ToolCall, typed: str) -> Sequence[str]:
        """Propose ids of orders whose id or name begins so; none to who may not see orders."""
        principal: Principal = call.principal
        if not principal.scopes >= sold.SCOPES or len(typed) > LONGEST_TYPED:
            return ()
        return await orders.ids_like(
            self._reports.of(principal.organization_id), principal.shop_key, typed, PROPOSED
        )

    async def product_ids(self, call: ToolCall, typed: str) -> Sequence[str]:
        """Propose ids of products whose id begins so, or whose title holds it; or none, as above."""
        principal: Principal = call.principal
        if not principal.scopes >= products.SCOPES or len(typed) > LONGEST_TYPED:
            return ()
        return await catalog.ids_like(
            self._reports.of(principal.organization_id), principal.shop_key, typed, PROPOSED
        )


async def _found(
    run: Callable[[Principal, Asked], Awaitable[ToolAnswer]], principal: Principal, asked: Asked
) -> Contents | None:
    try:
        return await _read(run, principal, asked)
    except NotFound:
        return None


async def _read(
    run: Callable[[Principal, Asked], Awaitable[ToolAnswer]], principal: Principal, asked: Asked
) -> Contents:
    return {"text": written(await run(principal, asked)).decode()}
