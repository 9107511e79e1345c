"""The official Python SDK's own client, with its own OAuth: both eras, without a window."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from mcp_types import TextContent
from pydantic import AnyUrl

from tests.http.oauth.client import said
from tests.mcp.real.served_stores import CALLBACK, ON_REQUEST_TOOLS, Keeper, ServedStores
from tolsey.http.mcp import wire
from tolsey.http.oauth import scopes

Era = Literal["auto", "legacy"]
ERAS: dict[Era, str] = {"auto": wire.MODERN, "legacy": "2025-11-25"}


@dataclass
class Kept:
    """What the SDK's client remembers of one server."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@asynccontextmanager
async def connected(
    keeper: Keeper, address: str, era: Era, kept: Kept
) -> AsyncIterator[tuple[Client, OAuthClientProvider]]:
    """Connect as the SDK does; whoever is at the browser allows what it asks for."""
    answers: list[dict[str, str]] = []

    async def redirected(asked: str) -> None:
        answers.append(said(await keeper.decide(asked)))

    async def called_back() -> AuthorizationCodeResult:
        answered = answers[-1]
        if "error" in answered:
            raise OAuthFlowError(answered["error"])
        return AuthorizationCodeResult(
            code=answered["code"], state=answered["state"], iss=answered["iss"]
        )

    metadata = OAuthClientMetadata(
        client_name="The official SDK", redirect_uris=[AnyUrl(CALLBACK)], scope="store:read"
    )
    oauth = OAuthClientProvider(address, metadata, kept, redirected, called_back)
    async with (
        httpx2.AsyncClient(auth=oauth) as web,
        Client(streamable_http_client(address, http_client=web), mode=era) as client,
    ):
        yield client, oauth


def ends_of(error: BaseException) -> list[BaseException]:
    """List what went wrong, out of however many groups."""
    if isinstance(error, BaseExceptionGroup):
        return [end for one in error.exceptions for end in ends_of(one)]
    return [error]


@pytest.mark.parametrize("era", list(ERAS))
async def test_the_sdk_connects_and_works(two_keepers: ServedStores, era: Era) -> None:
    kept = Kept()
    async with connected(two_keepers.ann, two_keepers.ann.address, era, kept) as (client, _):
        assert client.protocol_version == ERAS[era]
        assert client.instructions
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert all(tool.annotations and tool.output_schema for tool in tools.values())
        answer = await client.call_tool("get_store_summary", {})
        assert not answer.is_error
        assert answer.structured_content is not None
        assert answer.structured_content["name"] == "Shop of ann@example.com"
        assert isinstance(answer.content[0], TextContent)
        assert kept.tokens is not None
        assert kept.tokens.scope == scopes.written(scopes.DEFAULT)
        for resource in (await client.list_resources()).resources:
            assert (await client.read_resource(resource.uri)).contents
        assert (await client.list_prompts()).prompts
        with pytest.raises(MCPError):
            await client.call_tool("no_such_tool", {})


@pytest.mark.parametrize("era", list(ERAS))
async def test_the_sdk_reads_all_there_is_after_one_consent(
    two_keepers: ServedStores, era: Era
) -> None:
    async with connected(two_keepers.ann, two_keepers.ann.address, era, Kept()) as (client, _):
        for tool in (await client.list_tools()).tools:
            assert tool.annotations
            if tool.annotations.read_only_hint and tool.name not in ON_REQUEST_TOOLS:
                await client.call_tool(tool.name, {})  # whatever it says of its arguments
    assert two_keepers.ann.consents == 1


@pytest.mark.parametrize("era", list(ERAS))
async def test_the_sdk_asks_for_more_when_a_tool_needs_more_and_keeps_what_it_has(
    two_keepers: ServedStores, era: Era
) -> None:
    kept = Kept()
    async with connected(two_keepers.ann, two_keepers.ann.address, era, kept) as (client, _):
        tagging = {"idempotency_key": "key-00001", "order_id": "1", "tags": ["gift"]}
        with pytest.raises(MCPError) as caught:  # the store is not connected
            await client.call_tool("tag_order", tagging)
        assert "never_connected" in str(caught.value.error.data)
    assert kept.tokens is not None
    assert kept.tokens.scope
    assert kept.tokens.scope.split() == list(scopes.in_order({*scopes.DEFAULT, "orders:write"}))
    assert two_keepers.ann.consents == 2


@pytest.mark.parametrize("era", list(ERAS))
async def test_the_sdk_refreshes_when_its_hour_is_over(two_keepers: ServedStores, era: Era) -> None:
    kept = Kept()
    async with connected(two_keepers.ann, two_keepers.ann.address, era, kept) as (client, oauth):
        first = kept.tokens
        two_keepers.live_site.clock.advance(timedelta(minutes=61))
        oauth.context.token_expiry_time = 1.0
        answer = await client.call_tool("get_store_summary", {})
        assert not answer.is_error
    assert first is not None
    assert kept.tokens is not None
    assert kept.tokens.refresh_token != first.refresh_token


@pytest.mark.parametrize("era", list(ERAS))
@pytest.mark.parametrize("keeps", [True, False])
async def test_a_foreign_store_stays_closed_to_the_sdk(
    two_keepers: ServedStores, era: Era, keeps: bool
) -> None:
    kept = Kept()
    if keeps:  # the token of one's own store is tried at the other
        async with connected(two_keepers.ann, two_keepers.ann.address, era, kept):
            assert kept.tokens is not None
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - groups of groups
        async with connected(two_keepers.ann, two_keepers.eve.address, era, kept):
            pytest.fail("the store of somebody else opened")
    assert "invalid_target" in [str(end) for end in ends_of(caught.value)]
    async with connected(two_keepers.eve, two_keepers.eve.address, era, Kept()) as (client, _):
        answer = await client.call_tool("get_store_summary", {})
        assert answer.structured_content is not None
        assert answer.structured_content["name"] == "Shop of eve@example.com"
