"""Reading the commerce platform itself, through the store's own token."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Final

import orjson
from pydantic import Field, Json, WithJsonSchema

from tolsey.actors.ports import PlatformDenied, PlatformUnreachable, Shop
from tolsey.actors.refusals import Unprocessable
from tolsey.actors.store.effects import shops
from tolsey.actors.store.grants import lacking, to_platform_refusal
from tolsey.http.clients.commerce.costs import MOST_QUERY_POINTS
from tolsey.http.mcp.gate import Principal, require
from tolsey.http.mcp.registry import Hints
from tolsey.http.mcp.tools.building import ReadTools, ToolAnswer, ToolArguments, reads
from tolsey.http.mcp.tools.platform.fields import CHARACTERS, DEEPEST, MOST_FIELDS, Need
from tolsey.http.mcp.tools.shop_words import ShopValues
from tolsey.http.web.context import Service

LOOKS_OUTSIDE: Final = Hints(read_only=True, destructive=False, idempotent=True, open_world=True)
ANSWER_BYTES: Final = 256 * 1024
READING: Final = "read_"
WRITING: Final = "write_"


class PlatformQuery(ToolArguments):
    """What to ask the platform."""

    query: Annotated[
        str,
        Field(
            min_length=1,
            max_length=CHARACTERS,
            description=(
                f"One GraphQL query of at most {MOST_FIELDS} fields and {DEEPEST} levels,"
                " for example `{ products(first: 5) { nodes { id title } } }`."
            ),
        ),
    ]
    # A text: an object of any fields is none to clients that hold a model to a schema strictly.
    variables: Annotated[
        Json[dict[str, Any]],
        WithJsonSchema({"type": "string"}),
        Field(default_factory=dict, description="Of the query, as a JSON object in a text."),
    ]


class PlatformAnswer(ToolAnswer):
    """What the platform answers."""

    data: ShopValues


class PlatformTools(ReadTools):
    """Asks the platform for whoever the gate admitted."""

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._shops = shops(service.runtime.ask, service.vault, service.clock)

    @reads(
        "platform_query",
        "Query the commerce platform",
        "Sends one read-only Admin GraphQL query to the live shop: shop,"
        " products, variants, collections, inventory, locations, orders with line items,"
        " refunds and transactions. No customers, addresses, notes or metafields. Prefer"
        f" the other tools; use this for what they lack. A query costs at most {MOST_QUERY_POINTS:,.0f} points"
        " (an object 1, a connection 2 plus its nodes, so nested lists multiply) and answers at most"
        f" {ANSWER_BYTES // 1024} KiB. If it is refused as query_too_costly, request fewer items with `first`"
        " or nest fewer lists.",
        scopes=frozenset({"store:read"}),
        hints=LOOKS_OUTSIDE,
    )
    async def query(self, principal: Principal, asked: PlatformQuery) -> PlatformAnswer:
        """Ask the platform."""
        from tolsey.http.mcp.tools.platform.documents import read  # noqa: PLC0415 - imports graphql, which is slow

        reading = read(asked.query)
        require(principal, frozenset(need.ours for need in reading.needs))

        async def answered(shop: Shop) -> dict[str, Any]:
            check_grant(shop.scopes, reading.needs)
            return await self._service.commerce.graphql(shop, reading.text, asked.variables)

        try:
            data = await self._shops.call(principal.store_id, answered)
        except (PlatformDenied, PlatformUnreachable) as error:
            raise to_platform_refusal(error) from error
        if len(orjson.dumps(data)) > ANSWER_BYTES:
            raise Unprocessable(
                f"The result exceeds {ANSWER_BYTES} bytes. Request fewer items or fields.",
                code="answer_too_large",
            )
        return PlatformAnswer(data=data)


def check_grant(scopes: Sequence[str], needs: Iterable[Need]) -> None:
    """Refuse what the merchant is known not to have granted; who writes reads.

    While the grant is unknown nothing is refused: the platform says so itself (rules/shops#tokens).
    """
    if not scopes:
        return
    held = {name.replace(WRITING, READING, 1) for name in scopes} | set(scopes)
    for need in needs:
        if need.theirs and not need.theirs & held:
            raise lacking(min(need.theirs))
