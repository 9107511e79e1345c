"""How the payment processor is reached: one client for the platform's key and for sellers' keys."""

from collections.abc import Mapping
from typing import Any, Final

import anyio
import httpx
import stripe

from tolsey.http.clients.certificates import trusted_certificates
from tolsey.http.clients.counted import CountedClient

TIMEOUT_SECONDS: Final = 10.0
RETRIES: Final = 2
BUSY: Final = 429
FIRST_WAIT_SECONDS: Final = 0.5
LONGEST_WAIT_SECONDS: Final = 300.0
"""What a processor that is asked too much is believed to mean by `Retry-After`, at the most."""

# Else the package writes a file into the home directory and tells the processor about the machine.
stripe.enable_telemetry = False


class ProcessorTransport(stripe.HTTPClient):
    """Sends the package's requests: bounded in time, and past no proxy of the environment.

    The package's own sender hands forms over in a way that httpx has deprecated.
    """

    name = "httpx"

    def __init__(self, timeout_seconds: float, patience_seconds: float) -> None:
        super().__init__()
        self._client = CountedClient(
            "payments", verify=trusted_certificates(), timeout=timeout_seconds
        )
        self._patience_seconds = patience_seconds

    def sleep_async(self, secs: float) -> Any:
        """Wait before a retry."""
        return anyio.sleep(secs)

    async def request_async(
        self, method: str, url: str, headers: Mapping[str, str], post_data: Any = None
    ) -> tuple[bytes, int, Mapping[str, str]]:
        """Send a request; no answer is an APIConnectionError, which the package retries.

        It does not retry a 429, of which nothing was done: that is waited for here, as long as its
        maker has patience, and then answered with how long the processor asked to be left alone.
        """
        until = anyio.current_time() + self._patience_seconds
        wait = FIRST_WAIT_SECONDS
        while True:
            content, status, answered = await self._send(method, url, headers, post_data)
            if status != BUSY:
                return content, status, answered
            asked = asked_wait(answered, wait)
            if anyio.current_time() + asked > until:
                return content, status, {**answered, "stripe-should-retry": "false"}
            await anyio.sleep(asked)
            wait *= 2

    async def _send(
        self, method: str, url: str, headers: Mapping[str, str], post_data: Any
    ) -> tuple[bytes, int, Mapping[str, str]]:
        try:
            answer = await self._client.request(
                method, url, headers=dict(headers), content=post_data or None
            )
        except httpx.HTTPError as error:
            raise stripe.APIConnectionError(  # type: ignore[no-untyped-call] # the package's own
                type(error).__name__, should_retry=True
            ) from error
        return answer.content, answer.status_code, answer.headers

    async def close_async(self) -> None:
        """Close every connection."""
        await self._client.aclose()


def asked_wait(headers: Mapping[str, str], unsaid: float = 1.0) -> float:
    """Tell how many seconds an answer asks to wait (RFC 9110, section 10.2.3)."""
    said = headers.get("retry-after", "")
    if not (said.isascii() and said.isdecimal() and len(said) < 10):  # noqa: PLR2004 - no sane number is longer
        return unsaid
    return min(max(1.0, float(said)), LONGEST_WAIT_SECONDS)


class ProcessorClient(stripe.StripeClient):
    """The processor's own client, which knows how to close what it opened."""

    def __init__(
        self, key: str, api_base: str | None, wire: ProcessorTransport, retries: int
    ) -> None:
        super().__init__(
            key,
            base_addresses={"api": api_base} if api_base else {},
            http_client=wire,
            max_network_retries=retries,
        )
        self._wire = wire

    async def close(self) -> None:
        """Close every connection."""
        await self._wire.close_async()


def make_client(
    key: str,
    api_base: str | None = None,
    *,
    timeout_seconds: float = TIMEOUT_SECONDS,
    retries: int = RETRIES,
    patience_seconds: float = TIMEOUT_SECONDS,
) -> ProcessorClient:
    """Make a client with a key; `api_base` is the package's own address unless it is given.

    One call may be made with another key: `options={"api_key": ...}`. The caller closes the client.
    A processor that is asked too much is waited for as long as `patience_seconds`.
    """
    return ProcessorClient(
        key, api_base, ProcessorTransport(timeout_seconds, patience_seconds), retries
    )
