"""What is asked of the world outside, counted: by whom it is asked of, never by their hosts, which name shops."""

import time
from typing import Any, Final, Literal, TypeAlias

import httpx
from prometheus_client import Histogram

from tolsey.runtime.telemetry import CALL_BUCKETS

Peer: TypeAlias = Literal[
    "commerce",
    "payments",
    "model",
    "vectors",
    "agents",
    "storefronts",
    "queue",
    "dataset",
    "assets",
]

REQUESTS: Final = Histogram(
    "http_client_request_duration_seconds",
    "How long requests to the outside took until they were answered.",
    ("peer", "http_request_method", "http_response_status_code", "error_type"),
    buckets=CALL_BUCKETS,
)
"""Names of OpenTelemetry's conventions; a request without an answer has the type of its error instead of a status."""


class CountedClient(httpx.AsyncClient):
    """A client whose requests are counted; it follows no proxy of the environment."""

    def __init__(self, peer: Peer, **options: Any) -> None:
        super().__init__(trust_env=False, **options)
        self._peer = peer

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Send a request, and count how it ended."""
        began, status, failed = time.perf_counter(), "", ""
        try:
            response = await super().send(request, **options)
            status = str(response.status_code)
        except BaseException as error:
            failed = type(error).__name__
            raise
        finally:
            labels = (self._peer, request.method, status, failed)
            REQUESTS.labels(*labels).observe(time.perf_counter() - began)
        return response
