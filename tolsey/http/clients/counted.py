"""What is asked of the world outside, counted: by whom it is asked of, never by their hosts, which name shops."""

import asyncio
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

import httpx
import structlog
from prometheus_client import Histogram

from tolsey.runtime.telemetry import CALL_BUCKETS, Traced

Peer: TypeAlias = Literal[
    "commerce",
    "payments",
    "model",
    "vectors",
    "agents",
    "storefronts",
    "queue",
    "dataset",
    "providers",
    "esign",
    "escrow",
    "assets",
    "status",
]

REQUESTS: Final = Histogram(
    "http_client_request_duration_seconds",
    "How long requests to the outside took until they were answered.",
    ("peer", "http_request_method", "http_response_status_code", "error_type"),
    buckets=CALL_BUCKETS,
)
"""Names of OpenTelemetry's conventions; a request without an answer has the type of its error instead of a status."""

TOLD: Final[list[Callable[[Traced], None]]] = []
"""Who is told of each request of every client that one of ours caused."""


class CountedClient(httpx.AsyncClient):
    """A client whose requests are counted; it follows no proxy of the environment."""

    def __init__(self, peer: Peer, **options: Any) -> None:
        super().__init__(trust_env=False, **options)
        self._peer = peer

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Send a request, and count how it ended."""
        began, status, failed = asyncio.get_running_loop().time(), "", ""
        try:
            response = await super().send(request, **options)
            status = str(response.status_code)
        except BaseException as error:
            failed = type(error).__name__
            raise
        finally:
            labels = (self._peer, request.method, status, failed)
            seconds = asyncio.get_running_loop().time() - began
            REQUESTS.labels(*labels).observe(seconds)
            cause = structlog.contextvars.get_contextvars().get("request_id") if TOLD else None
            if cause:
                name, outcome = f"{request.method} {self._peer}", status or failed
                for told in TOLD:
                    told(Traced("request", name, cause, began, seconds, outcome, self._peer))
        return response
