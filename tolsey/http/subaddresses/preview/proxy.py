"""Shows a store's own storefront: raw ASGI that asks one shop, through the guard, for whoever has the address.

The page is a stranger's and may run scripts, so it is given no origin of ours: the policy `sandbox`
without `allow-same-origin` (HTML, "Sandboxing") keeps it from every cookie and answer, on the main
address too.
"""

from typing import Final
from urllib.parse import quote

import anyio
import httpx

from tolsey.http.clients.decoding import Undecodable, decoded
from tolsey.http.clients.guard import guarded_client
from tolsey.http.clients.storefront.visit import REDIRECTS
from tolsey.http.subaddresses.preview.addresses import PREVIEW_PREFIX, previewed_store
from tolsey.http.subaddresses.preview.rewriting import PreviewLinks
from tolsey.http.web import policies
from tolsey.http.web.context import Service
from tolsey.http.web.edge import Receive, Scope, Send, answer_problem, answer_whole
from tolsey.http.web.limits import headers as limit_headers
from tolsey.http.web.requests import ROUTE
from tolsey.storage.commerce import connections
from tolsey.storage.limits import whole_seconds

BODY_BYTES: Final = 16 << 20
SECONDS: Final = 30.0
AGENT: Final = "tolsey-preview/1.0"
SANDBOX: Final = "sandbox allow-forms allow-popups allow-scripts; frame-ancestors {base_url}"
"""One may look, and click: links stay in the preview, forms that send something find nobody."""


class TooLong(Exception):  # noqa: N818 - what a page is
    """A page is longer than a preview shows."""


class StorefrontPreview:
    """Answers `/api/preview/<token>/<path>` with what the token's store shows at the path."""

    def __init__(self, service: Service) -> None:
        self._service = service
        settings = service.settings
        self._policy = SANDBOX.format(base_url=settings.base_url).encode()
        via = settings.storefront_url
        self._via = httpx.URL(via) if via else None
        self._client = guarded_client([via] if via else (), peer="storefronts")

    async def close(self) -> None:
        """Let go of the connections."""
        await self._client.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        del receive
        scope[ROUTE] = f"{PREVIEW_PREFIX}<token>/<path>"
        token, slash, path = scope["path"].removeprefix(PREVIEW_PREFIX).partition("/")
        store_id = previewed_store(self._service.vault, token, self._service.clock())
        # The store must be connected to the shop now: the address outlives no disconnection.
        host = store_id and await connections.storefront_of(self._service.database, store_id)
        if not store_id or not host:
            sentence = "This preview has expired. Open a new one from the store."
            await answer_problem(send, scope, 404, "not_found", sentence)
        elif scope["method"] not in {"GET", "HEAD"}:
            sentence = "A preview is read-only. Use the storefront itself to place orders."
            allow = ((b"allow", b"GET, HEAD"),)
            await answer_problem(send, scope, 405, "method_not_allowed", sentence, headers=allow)
        elif not slash:
            await answer_whole(send, 308, ((b"location", f"{scope['path']}/".encode()),))
        elif await self._is_admitted(store_id, scope, send):
            await self._show(scope, send, host, path)

    async def _is_admitted(self, store_id: str, scope: Scope, send: Send) -> bool:
        verdict = await self._service.limits.admit([policies.PREVIEW_PAGES], f"store:{store_id}")
        if not verdict.allowed:
            said = {
                **limit_headers([verdict]),
                "Retry-After": str(whole_seconds(verdict.retry_after)),
            }
            lines = [(name.lower().encode(), value.encode()) for name, value in said.items()]
            await answer_problem(
                send, scope, 429, "too_many_requests", verdict.sentence, headers=lines
            )
        return verdict.allowed

    async def _show(self, scope: Scope, send: Send, host: str, path: str) -> None:
        below = scope["path"].removesuffix(path)
        try:
            with anyio.fail_after(SECONDS):
                status, headers, body = await self._read(scope, host, path)
        except (TimeoutError, httpx.HTTPError, Undecodable, TooLong):
            sentence = "The storefront didn't return a page, so the preview can't be shown. Try again later."
            await answer_problem(send, scope, 502, "commerce_unreachable", sentence)
            return
        links = PreviewLinks(host, below)
        kind = headers.get("content-type", "")
        lines = [
            (b"content-type", kind.encode("latin-1") or b"application/octet-stream"),
            (b"content-security-policy", self._policy),
            # Parts of a page without an origin are asked for from elsewhere, by the rule of browsers.
            (b"cross-origin-resource-policy", b"cross-origin"),
            (b"access-control-allow-origin", b"*"),
            (b"x-robots-tag", b"noindex"),
        ]
        if status in REDIRECTS and (leads := self._led(headers, host, below, path)):
            lines.append((b"location", leads.encode()))
        await answer_whole(
            send, status, lines, links.rewritten(body, kind.partition(";")[0].strip().lower())
        )

    async def _read(self, scope: Scope, host: str, path: str) -> tuple[int, httpx.Headers, bytes]:
        query = scope.get("query_string", b"")
        raw = b"/" + quote(path, safe="/!$&'()*+,;=:@-._~").encode()
        base = self._via or httpx.URL(f"https://{host}/")
        address = base.copy_with(raw_path=raw + (b"?" + query if query else b""))
        asked = {name: value for name, value in scope["headers"] if name in PASSED}
        headers = {
            **{name.decode(): value.decode("latin-1") for name, value in asked.items()},
            "user-agent": AGENT,
            "accept-encoding": "gzip",
            "host": host,
        }
        request = self._client.build_request(scope["method"], address, headers=headers)
        answer = await self._client.send(request, stream=True)
        try:
            body = bytearray()
            async for piece in decoded(answer):
                body += piece
                if len(body) > BODY_BYTES:
                    raise TooLong
            return answer.status_code, answer.headers, bytes(body)
        finally:
            with anyio.CancelScope(shield=True):
                await answer.aclose()

    def _led(self, headers: httpx.Headers, host: str, below: str, path: str) -> str | None:
        """Say where a redirect leads: within the preview, or out of it, where the browser goes alone."""
        try:
            to = httpx.URL(f"https://{host}/{quote(path)}").join(headers.get("location", ""))
        except httpx.InvalidURL:
            return None
        if to.scheme not in {"http", "https"} or not to.host:
            return None
        if to.host == host and to.port in {None, 80, 443}:
            return below + to.raw_path.decode().removeprefix("/")
        return str(to)


PASSED: Final = frozenset({b"accept", b"accept-language"})
"""What is passed on of a request: nothing that says who looks."""
