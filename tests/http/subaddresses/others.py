"""A public object storage for these tests."""

from dataclasses import dataclass, field
from typing import Any

ASSETS = "media"
FILE = b"0123456789"


@dataclass
class AssetServer:
    """Has one file, in one bucket; notes what it was asked."""

    url: str = ""
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        del receive
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.asked.append((scope["path"], headers))
        status, said, body = self._answer(scope["path"], headers)
        lines = [(name.encode(), value.encode()) for name, value in said.items()]
        await send({"type": "http.response.start", "status": status, "headers": lines})
        await send(
            {"type": "http.response.body", "body": body if scope["method"] == "GET" else b""}
        )

    def _answer(self, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        kind = {"content-type": "image/png", "etag": '"1"', "set-cookie": "session=theirs"}
        if path == "/bucket/away":
            return 302, {"location": "http://127.0.0.1:9/"}, b""
        if path == "/bucket/broken":
            return 500, {}, b"secret trace"
        if path != "/bucket/a b.png":
            return 403, {}, b"<Error/>"
        if headers.get("range") == "bytes=2-4":
            return 206, {**kind, "content-range": "bytes 2-4/10", "content-length": "3"}, FILE[2:5]
        return 200, {**kind, "content-length": "10"}, FILE
