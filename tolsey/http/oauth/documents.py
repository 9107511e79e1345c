"""Clients that are known by the address of a document about themselves (Client ID Metadata Documents).

The address is anyone's to choose, so the document is fetched through the guard: public hosts only, no
redirect, five kilobytes, five seconds; and an error is never remembered (rules/agents#clients).
"""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import httpx
import structlog

from tolsey.http.oauth.names import is_shown
from tolsey.http.oauth.parameters import InvalidClient
from tolsey.http.oauth.redirects import is_registrable
from tolsey.http.web.json import MalformedJson, parse
from tolsey.storage.oauth.clients import ClientRow

log = structlog.get_logger()

MOST_BYTES: Final = 5 * 1024
SECONDS: Final = 5.0
MOST_KEPT: Final = 1_000
LEAST_AGE: Final = timedelta(minutes=1)
MOST_AGE: Final = timedelta(hours=24)
MAX_AGE: Final = re.compile(r"(?:^|[,\s])max-age=(\d{1,9})")
ADDRESS: Final = re.compile(
    r"https://(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9](?::443)?"
    r"/[\x21\x22\x24-\x5b\x5d-\x7e]{0,1500}"
)
"""A named host of the public internet and a path, without user, fragment or backslash."""
DOTS: Final = frozenset({".", ".."})
HEADERS: Final = {"Accept": "application/json", "Accept-Encoding": "identity"}
"""What is unpacked can be far larger than what was sent."""
NO_SECRETS: Final = "none"
MOST_URIS: Final = 20
NAME_CHARACTERS: Final = 100


def is_document(client_id: str) -> bool:
    """Tell whether a client's id is the address of a document."""
    return client_id.startswith("https://")


class Documents:
    """Fetches documents, and keeps each for as long as its server says, within a minute and a day."""

    def __init__(self, client: httpx.AsyncClient, clock: Callable[[], datetime]) -> None:
        self._client = client
        self._clock = clock
        self._kept: OrderedDict[str, tuple[ClientRow, datetime]] = OrderedDict()

    async def client(self, client_id: str) -> ClientRow:
        """Read who a client says it is. Raises InvalidClient with what is wrong."""
        _check_address(client_id)
        kept = self._kept.get(client_id)
        if kept is not None and kept[1] > self._clock():
            self._kept.move_to_end(client_id)
            return kept[0]
        try:
            async with asyncio.timeout(SECONDS):
                body, age = await self._fetch(client_id)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, OSError, UnicodeError) as error:
            log.info("oauth.document_unreachable", client_id=client_id, why=type(error).__name__)
            raise InvalidClient(
                "The client metadata document can't be fetched. Check its URL and that it is"
                " public."
            ) from error
        found = _read(client_id, body)
        self._kept[client_id] = found, self._clock() + age
        self._kept.move_to_end(client_id)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return found

    async def _fetch(self, address: str) -> tuple[bytes, timedelta]:
        async with self._client.stream("GET", address, headers=HEADERS) as answer:
            self._client.cookies.clear()  # whoever wrote the document is told nothing of other visits
            if answer.status_code != httpx.codes.OK:
                raise InvalidClient(
                    "The client metadata document can't be fetched. Check its URL and that it"
                    " is public."
                )
            body = b""
            async for part in answer.aiter_raw(MOST_BYTES):
                body += part
                if len(body) > MOST_BYTES:
                    raise InvalidClient(
                        "The client metadata document is too large. Make it smaller."
                    )
            return body, _age(answer.headers.get("Cache-Control", ""))


def _age(cache_control: str) -> timedelta:
    said = cache_control.lower()
    found = MAX_AGE.search(said)
    if found is None or "no-store" in said or "no-cache" in said:
        return LEAST_AGE
    return min(max(timedelta(seconds=int(found[1])), LEAST_AGE), MOST_AGE)


def _check_address(client_id: str) -> None:
    """Refuse an address that could be read in two ways, or that names no document."""
    path = urlsplit(client_id).path if ADDRESS.fullmatch(client_id) else "/"
    if path == "/" or DOTS & set(unquote(path).split("/")):
        raise InvalidClient("The client_id must be the https URL of the client metadata document.")


def _read(client_id: str, body: bytes) -> ClientRow:
    try:
        said = parse(body)
    except MalformedJson as error:
        raise InvalidClient(
            "The client metadata document is not valid JSON. Correct its syntax."
        ) from error
    if not isinstance(said, dict) or said.get("client_id") != client_id:
        raise InvalidClient(
            "The client metadata document has a different client_id. Set it to the document's"
            " own URL."
        )
    if said.get("token_endpoint_auth_method", NO_SECRETS) != NO_SECRETS or "client_secret" in said:
        raise InvalidClient(
            "A client with a metadata document can't use a client secret. Set"
            " token_endpoint_auth_method to none."
        )
    return ClientRow(
        id=client_id,
        name=_name(said),
        redirect_uris=_uris(said),
        auth_method=NO_SECRETS,
        secret_hash=None,
    )


def _name(said: dict[str, Any]) -> str:
    name = said.get("client_name")
    if not isinstance(name, str) or not is_shown(name.strip()):
        raise InvalidClient(
            "The client metadata document has no valid client_name. Add a name with visible"
            " characters."
        )
    return name.strip()[:NAME_CHARACTERS]


def _uris(said: dict[str, Any]) -> Sequence[str]:
    found = said.get("redirect_uris")
    if not isinstance(found, list) or not 0 < len(found) <= MOST_URIS:
        raise InvalidClient("The client metadata document has no redirect_uris. Add at least one.")
    if not all(isinstance(one, str) and is_registrable(one) for one in found):
        raise InvalidClient(
            "The client metadata document contains a redirect_uri that is not allowed. Use"
            " https or localhost."
        )
    return tuple(found)
