"""How the payment processor is reached: one client for the platform's key and for sellers' keys."""

from collections.abc import Mapping
from typing import Any, Final

import anyio
import httpx
import stripe

TIMEOUT_SECONDS: Final = 10.0
RETRIES: Final = 2

# Else the package writes a file into the home directory and tells the processor about the machine.
stripe.enable_telemetry = False


class Wire(stripe.HTTPClient):
    """Sends the package's requests: bounded in time, and past no proxy of the environment.

    The package's own sender hands forms over in a way that httpx has deprecated.
    """

    name = "httpx"

    def __init__(self, timeout_seconds: float) -> None:
        super().__init__()
        self._client = httpx.AsyncClient(timeout=timeout_seconds, trust_env=False)

    def sleep_async(self, secs: float) -> Any:
        """Wait before a retry."""
        return anyio.sleep(secs)

    async def request_async(
        self, method: str, url: str, headers: Mapping[str, str], post_data: Any = None
    ) -> tuple[bytes, int, Mapping[str, str]]:
        """Send a request; no answer is an APIConnectionError, which the package retries."""
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


class ProcessorClient(stripe.StripeClient):
    """The processor's own client, which knows how to close what it opened."""

    def __init__(self, key: str, api_base: str | None, wire: Wire, retries: int) -> None:
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
) -> ProcessorClient:
    """Make a client with a key; `api_base` is the package's own address unless it is given.

    One call may be made with another key: `options={"api_key": ...}`. The caller closes the client.
    """
    return ProcessorClient(key, api_base, Wire(timeout_seconds), retries)
