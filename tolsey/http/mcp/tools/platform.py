"""Reading the commerce platform itself, through the store's own token."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Final

import orjson
from pydantic import Field

from tolsey.actors.ports import PlatformDenied, PlatformUnreachable, Shop
from tolsey.actors.refusals import Forbidden, Refusal, Unprocessable
from tolsey.actors.store.grants import commerce_unreachable, token_unavailable
from tolsey.actors.store.messages import Token, UseToken, store
from tolsey.http.clients.commerce.answers import QueryTooCostly
from tolsey.http.context import Service
from tolsey.http.mcp.gate import Principal, require
from tolsey.http.mcp.registry import Hints, Tool
from tolsey.http.mcp.tools.building import Answer, Arguments, tool
from tolsey.http.mcp.tools.platform_documents import CHARACTERS, read
from tolsey.http.mcp.tools.platform_fields import Need
from tolsey.storage.commerce import connections
from tolsey.storage.sealed import SealBroken

LOOKS_OUTSIDE: Final = Hints(read_only=True, destructive=False, idempotent=True, open_world=True)
ANSWER_BYTES: Final = 256 * 1024
UNAUTHORIZED: Final = 401
READING: Final = "read_"
WRITING: Final = "write_"


class PlatformQuery(Arguments):
    """What to ask the platform."""

    query: Annotated[str, Field(min_length=1, max_length=CHARACTERS)]
    variables: Annotated[dict[str, Any], Field(default_factory=dict)]


class PlatformAnswer(Answer):
    """What the platform answers."""

    data: dict[str, Any]


class PlatformTools:
    """Asks the platform for whoever the gate admitted."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def tools(self) -> Sequence[Tool]:
        """List the tools."""
        return [
            tool(
                "platform_query",
                "Query the commerce platform",
                "Sends one read-only Admin GraphQL query to the live shop: shop,"
                " products, variants, collections, inventory, locations, orders with line items,"
                " refunds and transactions. No customers, addresses, notes or metafields. Prefer"
                " the other tools; use this for what they lack.",
                arguments=PlatformQuery,
                answer=PlatformAnswer,
                run=self.query,
                scopes=frozenset({"store:read"}),
                hints=LOOKS_OUTSIDE,
            )
        ]

    async def query(self, principal: Principal, asked: PlatformQuery) -> PlatformAnswer:
        """Ask the platform."""
        reading = read(asked.query)
        require(principal, frozenset(need.ours for need in reading.needs))
        token = await self._service.runtime.ask(
            store(principal.store_id), UseToken(self._service.clock())
        )
        check_grant(token.scopes, reading.needs)
        try:
            shop = self._shop(token)
            data = await self._service.commerce.graphql(shop, reading.text, asked.variables)
        except (PlatformDenied, PlatformUnreachable, SealBroken) as error:
            raise refusal_of(error) from error
        if len(orjson.dumps(data)) > ANSWER_BYTES:
            raise Unprocessable(
                f"The answer has more than {ANSWER_BYTES} bytes; ask for less at once.",
                code="answer_too_large",
            )
        return PlatformAnswer(data=data)

    def _shop(self, token: Token) -> Shop:
        opened = connections.open_token(self._service.vault, token.store_id, token.access_token)
        return Shop(token.shop_domain, opened)


def check_grant(scopes: Sequence[str], needs: Iterable[Need]) -> None:
    """Refuse what the merchant is known not to have granted; who writes reads.

    While the grant is unknown nothing is refused: the platform says so itself (specification, "Errors").
    """
    if not scopes:
        return
    held = {name.replace(WRITING, READING, 1) for name in scopes} | set(scopes)
    for need in needs:
        if need.theirs and not need.theirs & held:
            missing = min(need.theirs)
            raise Forbidden(
                f"The merchant's app does not have the scope {missing}.",
                code="missing_scope",
                scope=missing,
            )


def refusal_of(error: PlatformDenied | PlatformUnreachable | SealBroken) -> Refusal:
    """Say why the platform gave no answer: what it refuses in its own words.

    A token it no longer knows is one that only the merchant can help with.
    """
    match error:
        case QueryTooCostly():
            return Unprocessable(error.message, code="query_too_costly")
        case PlatformUnreachable():
            return commerce_unreachable()
        case PlatformDenied() if error.status != UNAUTHORIZED:
            return Refusal(
                error.message,
                status=error.status,
                code="platform_denied",
                platformStatus=error.status,
                scope=error.missing_scope,
            )
        case _:
            return token_unavailable()
