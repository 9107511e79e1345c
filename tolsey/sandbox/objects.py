"""A bucket that speaks S3: checks signatures as documented, and keeps objects in memory.

AWS, "Signature Version 4": the canonical request, the string to sign and the key that is derived for a
day, a region and a service; in a header, or in the query of an address that expires.
"""

import hashlib
import hmac
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote
from xml.sax.saxutils import escape, unescape

from tolsey.sandbox.server import Receive, Send, listening, whole

ALGORITHM: Final = "AWS4-HMAC-SHA256"
STAMP: Final = "%Y%m%dT%H%M%SZ"
CLOCKS: Final = timedelta(minutes=15)
"""How far the clock of a signed request may be off."""
UNSIGNED: Final = "UNSIGNED-PAYLOAD"


class NotAllowed(Exception):  # noqa: N818 - the code of the answer
    """The signature does not hold, or no longer."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass
class Kept:
    """An object as it is kept."""

    body: bytes
    at: datetime


@dataclass
class Bucket:
    """A bucket, and the one key that may use it."""

    name: str = "files"
    key_id: str = "AKIASANDBOX"
    secret: str = field(default="sandbox-secret", repr=False)
    objects: dict[str, Kept] = field(default_factory=dict)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    is_away: bool = False
    ahead: timedelta = timedelta()
    """How far its clock is put forward."""
    url: str = ""

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[str]:
        """Serve on loopback and give the address."""
        async with listening(self._answer) as port:
            self.url = f"http://127.0.0.1:{port}"
            yield self.url

    @property
    def environment(self) -> Mapping[str, str]:
        """The provider's variables with which this bucket is reached."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": self.key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret,
        }

    async def _answer(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request.of(scope, await whole(receive))
        try:
            self._check(request)
            status, headers, body = self._carry_out(request)
        except NotAllowed as refused:
            status = 503 if refused.code == "ServiceUnavailable" else 403
            headers, body = {}, f"<Error><Code>{refused.code}</Code></Error>".encode()
        except KeyError:
            status, headers, body = 404, {}, b"<Error><Code>NoSuchKey</Code></Error>"
        size = headers.pop("content-length", str(len(body)))
        given = {**headers, "content-length": size}
        await send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [(name.encode(), value.encode()) for name, value in given.items()],
            }
        )
        shown = b"" if request.method == "HEAD" else body
        await send({"type": "http.response.body", "body": shown})

    def _check(self, request: "Request") -> None:
        """Hold a signature against what was sent. Raises NotAllowed."""
        if self.is_away:
            raise NotAllowed("ServiceUnavailable")
        now = datetime.now(UTC) + self.ahead
        said = request.signed()
        if said is None or not said.credential.startswith(f"{self.key_id}/"):
            raise NotAllowed("AccessDenied")
        at = datetime.strptime(said.at, STAMP).replace(tzinfo=UTC)
        if said.expires is None and abs(now - at) > CLOCKS:
            raise NotAllowed("RequestTimeTooSkewed")
        if said.expires is not None and now > at + said.expires:
            raise NotAllowed("AccessDenied")
        if said.payload != UNSIGNED and said.payload != hashlib.sha256(request.body).hexdigest():
            raise NotAllowed("XAmzContentSHA256Mismatch")
        scope = said.credential.split("/", 1)[1]
        asked = hashlib.sha256(request.canonical(said).encode()).hexdigest()
        to_sign = f"{ALGORITHM}\n{said.at}\n{scope}\n{asked}"
        key = f"AWS4{self.secret}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        if not hmac.compare_digest(
            hmac.new(key, to_sign.encode(), "sha256").hexdigest(), said.signature
        ):
            raise NotAllowed("SignatureDoesNotMatch")

    def _carry_out(self, request: "Request") -> tuple[int, dict[str, str], bytes]:
        bucket, _, key = unquote(request.path).lstrip("/").partition("/")
        if bucket != self.name:
            raise NotAllowed("AccessDenied")
        query = dict(request.query)
        if "uploads" in query or "uploadId" in query:
            return self._upload(request, key, query)
        if request.method == "PUT":
            source = request.headers.get("x-amz-copy-source")
            copied = source and self.objects[unquote(source).lstrip("/").partition("/")[2]]
            return self._put(key, copied.body if copied else request.body, is_copy=bool(source))
        if "delete" in query:
            return 200, {"content-type": "application/xml"}, self._delete(request.body)
        if request.method == "DELETE":
            self.objects.pop(key, None)
            return 204, {}, b""
        if not key:
            return 200, {"content-type": "application/xml"}, self._listed(query.get("prefix", ""))
        return self._read(key, request)

    def _put(self, key: str, body: bytes, *, is_copy: bool) -> tuple[int, dict[str, str], bytes]:
        self.objects[key] = Kept(body, datetime.now(UTC))
        tag = f'"{hashlib.sha256(body).hexdigest()}"'
        said = f"<CopyObjectResult><ETag>{escape(tag)}</ETag></CopyObjectResult>" if is_copy else ""
        return 200, {"etag": tag}, said.encode()

    def _read(self, key: str, request: "Request") -> tuple[int, dict[str, str], bytes]:
        kept = self.objects[key]
        headers = {
            "etag": f'"{hashlib.sha256(kept.body).hexdigest()}"',
            "last-modified": kept.at.strftime("%a, %d %b %Y %H:%M:%S GMT"),
            "content-type": "application/octet-stream",
        }
        size = str(len(kept.body))
        if request.method == "HEAD":
            return 200, {**headers, "content-length": size}, b""
        return 200, headers, kept.body

    def _upload(
        self, request: "Request", key: str, query: Mapping[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        """Take an object in parts: begun, each part, then all of it or nothing."""
        if "uploads" in query:
            id = f"upload-{len(self.uploads)}"
            self.uploads[id] = {}
            said = f"<UploadId>{id}</UploadId>"
            told = f"<InitiateMultipartUploadResult>{said}</InitiateMultipartUploadResult>"
            return 200, {}, told.encode()
        parts = self.uploads[query["uploadId"]]
        if request.method == "PUT":
            parts[int(query["partNumber"])] = request.body
            return 200, {"etag": f'"{hashlib.sha256(request.body).hexdigest()}"'}, b""
        del self.uploads[query["uploadId"]]
        if request.method == "DELETE":
            return 204, {}, b""
        _, headers, _ = self._put(key, b"".join(parts[n] for n in sorted(parts)), is_copy=False)
        tag = escape(headers["etag"])
        told = f"<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>"
        return 200, {}, told.encode()

    def _delete(self, body: bytes) -> bytes:
        """Take away the objects that a body names."""
        keys = [unescape(key) for key in re.findall(r"<Key>(.*?)</Key>", body.decode())]
        for key in keys:
            self.objects.pop(key, None)
        told = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
        return f"<DeleteResult>{told}</DeleteResult>".encode()

    def _listed(self, prefix: str) -> bytes:
        found = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(kept.body)}</Size>"
            f"<LastModified>{kept.at.strftime('%Y-%m-%dT%H:%M:%S.000Z')}</LastModified></Contents>"
            for key, kept in sorted(self.objects.items())
            if key.startswith(prefix)
        )
        told = f"<ListBucketResult><IsTruncated>false</IsTruncated>{found}</ListBucketResult>"
        return told.encode()


@dataclass(frozen=True)
class Signed:
    """What a request says of its own signature."""

    credential: str
    at: str
    headers: str
    payload: str
    signature: str
    expires: timedelta | None = None


@dataclass(frozen=True)
class Request:
    """A request as it was signed."""

    method: str
    path: str
    query: list[tuple[str, str]]
    headers: Mapping[str, str]
    body: bytes

    @classmethod
    def of(cls, scope: Mapping[str, Any], body: bytes) -> "Request":
        """Read a request of ASGI."""
        path = scope["raw_path"].decode().partition("?")[0]
        query = parse_qsl(scope["query_string"].decode(), keep_blank_values=True)
        headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        return cls(scope["method"], path, query, headers, body)

    def signed(self) -> Signed | None:
        """Read the signature of a header, or of an address; None where there is none."""
        query = dict(self.query)
        if "X-Amz-Signature" in query:
            return Signed(
                query["X-Amz-Credential"],
                query["X-Amz-Date"],
                query["X-Amz-SignedHeaders"],
                UNSIGNED,
                query["X-Amz-Signature"],
                timedelta(seconds=int(query["X-Amz-Expires"])),
            )
        algorithm, _, said = self.headers.get("authorization", "").partition(" ")
        if algorithm != ALGORITHM:
            return None
        fields = dict(part.strip().split("=", 1) for part in said.split(","))
        return Signed(
            fields["Credential"],
            self.headers["x-amz-date"],
            fields["SignedHeaders"],
            self.headers["x-amz-content-sha256"],
            fields["Signature"],
        )

    def canonical(self, said: Signed) -> str:
        """Write the request in the one way in which it is signed."""
        query = "&".join(
            f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}"
            for name, value in sorted(self.query)
            if name != "X-Amz-Signature"
        )
        named = said.headers.split(";")
        headers = "".join(f"{name}:{' '.join(self.headers[name].split())}\n" for name in named)
        path = quote(unquote(self.path), safe="/-_.~")
        return f"{self.method}\n{path}\n{query}\n{headers}\n{said.headers}\n{said.payload}"
