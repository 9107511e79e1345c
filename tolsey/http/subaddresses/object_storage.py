"""The sub-address of public files: `/<label>/<path>` is what the label's object storage has at the path."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

import anyio
import httpx

from tolsey.http.clients.certificates import trusted_certificates
from tolsey.http.clients.counted import CountedClient
from tolsey.http.web.edge import Headers, Receive, Scope, Send, answer_problem
from tolsey.http.web.requests import ROUTE

SECONDS: Final = 300.0
"""How long one file may take, however slowly its reader reads."""
ASKED: Final = frozenset(
    {
        b"accept",
        b"if-match",
        b"if-modified-since",
        b"if-none-match",
        b"if-range",
        b"if-unmodified-since",
        b"range",
    }
)
"""What is passed on of a request: nothing that says who asks."""
ANSWERED: Final = frozenset(
    {
        "accept-ranges",
        "cache-control",
        "content-disposition",
        "content-encoding",
        "content-language",
        "content-length",
        "content-range",
        "content-type",
        "etag",
        "last-modified",
        "vary",
    }
)
"""What is passed on of an answer: no cookie, and no policy of another's."""
PASSED_ON: Final = frozenset({200, 206, 304, 412, 416})
OPEN: Final = (
    (b"access-control-allow-origin", b"*"),
    (b"cross-origin-resource-policy", b"cross-origin"),
)
"""Pages of anywhere may use what is public."""


class AssetHost:
    """Answers with the files of the object storages that `CDN_ORIGIN_<LABEL>` names."""

    def __init__(self, origins: Mapping[str, str]) -> None:
        self._origins = origins
        self._client = CountedClient(
            "assets",
            verify=trusted_certificates(),
            timeout=httpx.Timeout(30.0, connect=5.0),
            limits=httpx.Limits(max_connections=50, max_keepalive_connections=20),
            follow_redirects=False,
        )

    async def close(self) -> None:
        """Let go of the connections."""
        await self._client.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        del receive
        scope[ROUTE] = "//cdn/<label>/<path>"
        label, _, path = scope["path"].removeprefix("/").partition("/")
        origin = self._origins.get(label)
        # A client or a storage that resolves dots would leave the folder that the origin may be.
        if origin is None or not path or {".", ".."} & set(path.split("/")):
            await answer_problem(
                send,
                scope,
                404,
                "not_found",
                "This file doesn't exist or has expired. Request a new link.",
            )
        elif scope["method"] not in {"GET", "HEAD"}:
            sentence = "This address supports GET and HEAD only. Use the API to upload files."
            allow = ((b"allow", b"GET, HEAD"),)
            await answer_problem(send, scope, 405, "method_not_allowed", sentence, headers=allow)
        else:
            await self._relay(scope, send, f"{origin}/{quote(path, safe=SAFE)}")

    async def _relay(self, scope: Scope, send: Send, address: str) -> None:
        headers = [pair for pair in scope["headers"] if pair[0].lower() in ASKED]
        query = scope.get("query_string", b"").decode("latin-1")
        request = self._client.build_request(
            scope["method"], address + (f"?{query}" if query else ""), headers=headers
        )
        # Bytes go through as they are, so the length that is said stays right.
        request.headers["accept-encoding"] = "identity"
        try:
            answer = await self._client.send(request, stream=True)
        except httpx.HTTPError:
            await _answer_away(scope, send)
            return
        try:
            # Object storages say 403 for what is not there to whom may not list.
            if answer.status_code in {403, 404}:
                await answer_problem(
                    send,
                    scope,
                    404,
                    "not_found",
                    "This file doesn't exist or has expired. Request a new link.",
                )
            elif answer.status_code not in PASSED_ON:
                await _answer_away(scope, send)
            else:
                await _pass_on(answer, send)
        finally:
            with anyio.CancelScope(shield=True):
                await answer.aclose()


SAFE: Final = "/!$&'()*+,;=:@-._~"
"""What a path may hold as it is (RFC 3986, section 3.3)."""


async def _answer_away(scope: Scope, send: Send) -> None:
    sentence = "The file storage is unreachable. Try again in a minute."
    wait = ((b"retry-after", b"60"),)
    await answer_problem(send, scope, 503, "files_unavailable", sentence, headers=wait)


async def _pass_on(answer: httpx.Response, send: Send) -> None:
    headers: Headers = [
        *(
            (name.encode(), value.encode("latin-1"))
            for name, value in answer.headers.items()
            if name in ANSWERED
        ),
        *OPEN,
    ]
    await send({"type": "http.response.start", "status": answer.status_code, "headers": headers})
    with anyio.fail_after(SECONDS):
        async for piece in answer.aiter_raw():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
