"""The browser of somebody who uses the service: requests with a session, and plain words on failure."""

import ipaddress
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import httpx

from tolsey.demo.telling import Unexpected

NOWHERE: Final = ipaddress.ip_network("198.18.0.0/15")
"""Addresses that nobody has (RFC 2544)."""


@dataclass
class Browser:
    """One person's session with the service."""

    client: httpx.AsyncClient

    async def post(self, path: str, **body: Any) -> dict[str, Any]:
        """Post JSON."""
        return _parsed(path, await self.client.post(path, json=body))

    async def get(self, path: str, **query: str) -> dict[str, Any]:
        """Read JSON."""
        return _parsed(path, await self.client.get(path, params=query))


@asynccontextmanager
async def browsing(base: str) -> AsyncIterator[Browser]:
    """Open a browser on the service, somewhere in the world: each has an address of its own.

    The service hears of it as from a proxy in front. So its limits, which are kept from run to run,
    hold for everybody in the sandbox as they do outside, and not for all of them together.
    """
    somewhere = NOWHERE[secrets.randbelow(NOWHERE.num_addresses)]
    headers = {"Origin": base, "X-Forwarded-For": str(somewhere)}
    async with httpx.AsyncClient(
        base_url=base, headers=headers, timeout=60, trust_env=False
    ) as client:
        yield Browser(client)


def _parsed(path: str, answer: httpx.Response) -> dict[str, Any]:
    if answer.is_error:
        raise Unexpected(f"{path} answered {answer.status_code}: {answer.text[:300]}")
    parsed: dict[str, Any] = answer.json()
    return parsed


async def send_form(address: str, **form: str) -> None:
    """Send the form of somebody else's page, which leads on when it was in order."""
    async with httpx.AsyncClient(timeout=60, trust_env=False) as client:
        answer = await client.post(address, data=form)
    if not answer.is_redirect:
        raise Unexpected(f"{address} answered {answer.status_code} and led nowhere")
