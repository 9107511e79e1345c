"""The outside vector store: a REST service that keeps vectors by namespace."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import httpx

TIMEOUT_SECONDS = 10.0
NO_SUCH_NAMESPACE = 404


class VectorStoreFailed(Exception):  # noqa: N818 - what the other service did
    """The vector store is out of reach or did not do what it was asked."""


class RestVectors:
    """The vector store at `VECTOR_URL`; every failure is a VectorStoreFailed."""

    def __init__(self, url: str, token: str, client: httpx.AsyncClient) -> None:
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"}
        self._client = client

    async def purge(self, namespaces: Sequence[str]) -> None:
        """Delete namespaces; one that is not there is purged already."""
        for namespace in namespaces:
            await self._call("DELETE", f"/delete-namespace/{quote(namespace, safe='')}")

    async def count(self, namespaces: Sequence[str]) -> int:
        """Count the vectors of these namespaces."""
        body = await self._call("GET", "/info")
        kept = body.get("result", {}).get("namespaces", {}) if isinstance(body, dict) else {}
        return sum(int(kept.get(name, {}).get("vectorCount", 0)) for name in namespaces)

    async def _call(self, method: str, path: str) -> Any:
        try:
            response = await self._client.request(
                method, f"{self._url}{path}", headers=self._headers, timeout=TIMEOUT_SECONDS
            )
            if response.status_code == NO_SUCH_NAMESPACE:
                return {}
            response.raise_for_status()
            return response.json() if response.content else {}
        except (httpx.HTTPError, ValueError) as error:
            raise VectorStoreFailed(type(error).__name__) from error
