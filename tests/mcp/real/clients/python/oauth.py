"""The official SDK's own OAuth, 1.x and 2.x, for clients that leave the browser to the application."""

import asyncio
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import OAuthClientProvider
from mcp.shared import auth
from pydantic import AnyUrl

from tests.mcp.real.clients.python.journey import ADDRESS


class Kept:
    """What an application remembers of one server."""

    tokens: auth.OAuthToken | None = None
    client: auth.OAuthClientInformationFull | None = None

    async def get_tokens(self) -> auth.OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: auth.OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> auth.OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: auth.OAuthClientInformationFull) -> None:
        self.client = client_info


async def provider(name: str) -> OAuthClientProvider:
    """Listen where the browser is sent back to, and say aloud where the user is to go."""
    arrived: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = (await reader.readline()).split()[1].decode()
        arrived.set_result({key: one for key, (one,) in parse_qs(urlsplit(target).query).items()})
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/callback"

    async def redirected(asked: str) -> None:
        print(asked, flush=True)  # noqa: T201 - the user's browser reads it

    async def called_back() -> Any:
        answered = await arrived
        server.close()
        if not hasattr(auth, "AuthorizationCodeResult"):  # 1.x
            return answered["code"], answered["state"]
        return auth.AuthorizationCodeResult(**answered)

    metadata = auth.OAuthClientMetadata(client_name=name, redirect_uris=[AnyUrl(url)])
    return OAuthClientProvider(ADDRESS, metadata, Kept(), redirected, called_back)
