"""Which sub-address serves what; one that is not listed as live serves nothing (rules/service#sub-addresses)."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlsplit

from tolsey.http.layout.assets import FOLDER
from tolsey.http.subaddresses.object_storage import AssetHost
from tolsey.http.subaddresses.preview.addresses import PREVIEW_PREFIX
from tolsey.http.web.edge import ASGIApp, Receive, Scope, Send, answer_problem, answer_whole
from tolsey.setting_types import SUBDOMAINS
from tolsey.settings import Settings

STATUS_PAGES: Final = re.compile(rf"/status(/.*|\.json)?|{FOLDER}.*", re.DOTALL)
"""What the pages of the status sub-address lead to and are made of, as on the main address."""
PREVIEWS: Final = re.compile(rf"{PREVIEW_PREFIX}.+", re.DOTALL)


class Surface:
    """Answers a sub-address with what the main address has below a path; no session counts there.

    What `named_alike` matches has the same path on both; without `below` there is nothing else.
    """

    def __init__(
        self, inner: ASGIApp, below: str | None, named_alike: re.Pattern[str] | None = None
    ) -> None:
        self._inner = inner
        self._below = below
        self._named_alike = named_alike

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path = scope["path"]
        if self._named_alike is None or not self._named_alike.fullmatch(path):
            if self._below is None:
                await answer_nothing(scope, receive, send)
                return
            path = self._below + path.removesuffix("/" if path == "/" else "")
        headers = [pair for pair in scope["headers"] if pair[0].lower() != b"cookie"]
        # The same scope goes on: the request is counted and logged by the rule that it matches.
        scope.update(path=path, raw_path=quote(path).encode(), headers=headers)
        await self._inner(scope, receive, send)


class DocumentRedirects:
    """Leads each path of the documents' sub-address to where it is on the main address."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        del receive
        # Written anew, so that whatever was asked is one path of ours.
        path = quote(scope["path"].rstrip("/"), safe="/-._~")
        query = scope.get("query_string", b"").decode("ascii", "ignore")
        address = f"{self._base_url}/docs{path}" + (f"?{query}" if query else "")
        await answer_whole(send, 308, ((b"location", address.encode()),))


async def answer_nothing(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer that there is nothing at an address."""
    del receive
    await answer_problem(
        send, scope, 404, "not_found", "This page or endpoint doesn't exist. Check the address."
    )


def subaddresses(
    settings: Settings, inner: ASGIApp, *, agents: ASGIApp, assets: AssetHost
) -> Mapping[bytes, ASGIApp]:
    """List the hosts of all sub-addresses with what each serves; `inner` serves the main one's paths."""
    serving: dict[str, ASGIApp] = {
        "mcp": agents,
        "api": Surface(inner, "/api/intelligence"),
        "hooks": Surface(inner, "/api/webhooks"),
        "status": Surface(inner, "/status", STATUS_PAGES),
        "docs": DocumentRedirects(settings.base_url),
        "cdn": assets,
        "preview": Surface(inner, None, PREVIEWS),
    }
    netloc = urlsplit(settings.base_url).netloc
    live = settings.next_public_live_subdomains
    return {
        f"{name}.{netloc}".encode(): serving[name] if name in live else answer_nothing
        for name in SUBDOMAINS
    }
