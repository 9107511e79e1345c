"""The queue of deep scans, and the external data set: two services that feed the registry."""

from collections.abc import AsyncIterator
from typing import Any, Final

import httpx
import orjson

from tolsey.actors.ports import DatasetReader, ScanQueue
from tolsey.actors.refusals import MissingCredential
from tolsey.http.clients.certificates import trusted_certificates
from tolsey.http.clients.counted import CountedClient

TIMEOUT_SECONDS: Final = 10.0
PAGE: Final = 250
MOST_PAGES: Final = 400
FIELDS: Final = ("domain", "url", "website", "hostname")
"""Where an entry of the data set may name its shop."""


class PublishedScans(ScanQueue):
    """Publishes scans to the queue, which calls back when their turn has come."""

    def __init__(self, url: str | None, token: str | None, destination: str) -> None:
        self._url = url
        self._token = token
        self._destination = destination
        self._http = CountedClient("queue", verify=trusted_certificates(), timeout=TIMEOUT_SECONDS)

    async def publish(self, domain: str) -> None:
        """Queue a scan. Raises MissingCredential, and ConnectionError where the queue does not take it."""
        if self._url is None:
            raise MissingCredential("QUEUE_URL")
        if self._token is None:
            raise MissingCredential("QUEUE_TOKEN")
        try:
            answer = await self._http.post(
                f"{self._url}/v2/publish/{self._destination}",
                content=orjson.dumps({"domain": domain}),
                headers={
                    "Authorization": f"Bearer {self._token}",
                    "Content-Type": "application/json",
                    # One scan of a domain waits there at a time, however often it is due.
                    "Upstash-Deduplication-Id": f"scan-{domain}",
                },
            )
        except httpx.HTTPError as error:
            raise ConnectionError(
                "The scan queue is unreachable. Try again in a minute."
            ) from error
        if not answer.is_success:
            raise ConnectionError(f"The queue answered {answer.status_code}.")

    async def close(self) -> None:
        """Let go of connections."""
        await self._http.aclose()


class ExternalDataset(DatasetReader):
    """Reads a data set page by page, as its provider serves it."""

    def __init__(self, url: str, id: str, token: str) -> None:
        self._address = f"{url}/v2/datasets/{id}/items"
        self._http = CountedClient(
            "dataset",
            verify=trusted_certificates(),
            timeout=TIMEOUT_SECONDS,
            headers={"Authorization": f"Bearer {token}"},
        )

    async def domains(self) -> AsyncIterator[str | None]:
        """Give what each entry names; None for an entry that cannot be read, as for a page that is not there."""
        for page in range(MOST_PAGES):
            entries = await self._page(page * PAGE)
            for entry in entries:
                yield _named(entry)
            if len(entries) < PAGE:
                return

    async def _page(self, offset: int) -> list[Any]:
        asked: dict[str, str | int] = {
            "format": "json",
            "clean": "true",
            "limit": PAGE,
            "offset": offset,
        }
        try:
            answer = await self._http.get(self._address, params=asked)
            found = orjson.loads(answer.content) if answer.is_success else None
        except (httpx.HTTPError, orjson.JSONDecodeError):
            found = None
        # A page that is not there counts as entries that could not be taken.
        return found if isinstance(found, list) else [None] * PAGE

    async def close(self) -> None:
        """Let go of connections."""
        await self._http.aclose()


def _named(entry: Any) -> str | None:
    if not isinstance(entry, dict):
        return None
    values = (entry.get(name) for name in FIELDS)
    return next((one for one in values if isinstance(one, str)), None)
