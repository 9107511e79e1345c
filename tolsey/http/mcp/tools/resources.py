"""The resources that the server offers: the store, its limits, the launch playbook, orders and products."""

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
    """Offers resources, read by the same functions as the tools."""

    def __init__(self, service: Service) -> None:
        self._reports = service.reports
        self._stores = stores.StoreTools(service)
        self._money = money.MoneyTools(service)
        self._orders = sold.OrderTools(service)
        self._products = products.CatalogTools(service)

    def offered(self) -> Sequence[OfferedResource | Template]:
        """List the resources and resource templates."""
        return [
            OfferedResource(
                "store://summary",
                "summary",
                "Store summary",
                "The store's name, currency, time zone and connection status. Same content as"
                " get_store_summary.",
                JSON,
                self.summary,
                stores.SCOPES,
            ),
            OfferedResource(
                "store://policies/limits",
                "limits",
                "Plan limits",
                "The limits of the organization's plan, and how many tool calls are left in each time"
                " window. Same content as get_plan_limits.",
                JSON,
                self.limits,
                money.SCOPES,
            ),
            OfferedResource(
                "store://launch/playbook",
                "playbook",
                "Launch playbook",
                "The milestones of a store launch in order, with the dependencies and requirements of"
                " each. It is the same for every store; list_launch_milestones returns this store's"
                " progress.",
                JSON,
                self.playbook,
                LAUNCH,
            ),
            Template(
                "store://order/{id}",
                "order",
                "Order",
                "One order with its refunds and fulfillments, by its id. Same content as get_order.",
                JSON,
                self.order,
                sold.SCOPES,
                {"id": self.order_ids},
            ),
            Template(
                "store://product/{id}",
                "product",
                "Product",
                "One product with its variants, by its id. Same content as get_product.",
                JSON,
                self.product,
                products.SCOPES,
                {"id": self.product_ids},
            ),
        ]

    async def summary(self, call: ToolCall) -> Contents:
        """Read the store summary."""
        return await _read(self._stores.summary, call.principal, Nothing())

    async def limits(self, call: ToolCall) -> Contents:
        """Read the plan limits."""
        return await _read(self._money.limits, call.principal, Nothing())

    async def playbook(self, call: ToolCall) -> Contents:
        """Read the launch playbook."""
        del call
        return {"text": PLAYBOOK.text}

    async def order(self, call: ToolCall, variables: Mapping[str, str]) -> Contents | None:
        """Read an order. Return None if no order has that id."""
        asked = sold.OrderId.model_construct(order_id=variables["id"])
        return await _found(self._orders.get, call.principal, asked)

    async def product(self, call: ToolCall, variables: Mapping[str, str]) -> Contents | None:
        """Read a product. Return None if no product has that id."""
        asked = products.ProductId.model_construct(product_id=variables["id"])
        return await _found(self._products.get, call.principal, asked)

    async def order_ids(self, call: ToolCall, typed: str) -> Sequence[str]:
        """Suggest ids of orders whose id or name starts with the text, if the agent may read orders."""
        principal: Principal = call.principal
        if not principal.scopes >= sold.SCOPES or len(typed) > LONGEST_TYPED:
            return ()
        return await orders.ids_like(
            self._reports.of(principal.organization_id), principal.shop_key, typed, PROPOSED
        )

    async def product_ids(self, call: ToolCall, typed: str) -> Sequence[str]:
        """Suggest ids of products whose id starts with the text or whose title contains it, if allowed."""
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
