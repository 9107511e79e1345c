"""Where the bytes of files are: a folder, or a bucket that speaks S3, by what the bytes come to (sha256).

What comes in is written beside the rest first, since its sum is known at its end only, and then copied
to its place. Organizations are apart: whether another one has the same bytes, nobody learns.
"""

import hashlib
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import obstore
from anyio import to_thread
from obstore.exceptions import BaseError
from obstore.store import LocalStore, ObjectStore, S3Store

from tolsey.runtime.ids import new_id
from tolsey.setting_types import is_loopback

INCOMING: Final = "incoming"
ERASURES: Final = "erasures"
CHUNK_BYTES: Final = 256 * 1024
PART_BYTES: Final = 8 * 1024 * 1024
PARTS_AT_ONCE: Final = 2
"""Of one file: an upload holds so many parts in memory."""
TENANT: Final = re.compile(r"[a-z]+_[A-Za-z0-9-]{1,64}")
SUM: Final = re.compile(r"[0-9a-f]{64}")
ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
OPTIONS: Final = {"connect_timeout": "5s", "timeout": "60s"}
RETRY: Final[Any] = {"max_retries": 2, "retry_timeout": timedelta(seconds=20)}


class ObjectsAway(Exception):  # noqa: N818 - what they are
    """The object store did not do what it was asked; it may the next time."""


class ObjectGone(Exception):  # noqa: N818 - what it is
    """The bytes are not there."""


class FileTooLarge(Exception):  # noqa: N818 - what it is
    """More bytes came than a file may have."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """Bytes that have come whole and have no place yet."""

    path: str
    sha256: str
    size: int


class Objects:
    """Keeps bytes under what they come to, apart for each organization."""

    def __init__(self, store: ObjectStore, folder: Path | None = None) -> None:
        self._store = store
        self._folder = folder

    @classmethod
    def of(cls, url: str | None, data_dir: Path) -> "Objects":
        """Open the bucket of an address, or the folder of this machine where there is none."""
        if url is not None:
            return cls(_bucket(url))
        return cls.in_folder(data_dir / "objects")

    @classmethod
    def in_folder(cls, folder: Path) -> "Objects":
        """Open a folder of this machine, which is made where it is not there."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return cls(LocalStore(folder, mkdir=True), folder)

    async def take_in(self, chunks: AsyncIterator[bytes], most_bytes: int) -> Incoming:
        """Write bytes down as they come; raises FileTooLarge, and nothing of it stays, when too many do."""
        path, digest, size = f"{INCOMING}/{new_id('up')}", hashlib.sha256(), 0

        async def counted() -> AsyncGenerator[bytes]:
            nonlocal size
            async for chunk in chunks:
                size += len(chunk)
                if size > most_bytes:
                    raise FileTooLarge(most_bytes)
                digest.update(chunk)
                yield chunk

        async with _translated():
            await obstore.put_async(
                self._store, path, counted(), chunk_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE
            )
        return Incoming(path, digest.hexdigest(), size)

    async def settle(self, incoming: Incoming, tenant: str) -> None:
        """Put bytes that came in where they belong; to put them there twice is once."""
        async with _translated():
            await obstore.copy_async(self._store, incoming.path, _path(tenant, incoming.sha256))

    async def drop(self, incoming: Incoming) -> None:
        """Let go of bytes that came in; what fails here is swept later."""
        await self._delete(incoming.path)

    async def read(self, tenant: str, sha256: str) -> AsyncIterator[bytes]:
        """Give the bytes, as they are read; raises ObjectGone before the first of them."""
        async with _translated():
            found = await obstore.get_async(self._store, _path(tenant, sha256))
        return _read(found)

    async def address(self, tenant: str, sha256: str, seconds: int) -> str | None:
        """Sign an address that gives the bytes for so long; None where only the service itself can."""
        if not isinstance(self._store, S3Store):
            return None
        async with _translated():
            return await obstore.sign_async(
                self._store, "GET", _path(tenant, sha256), timedelta(seconds=seconds)
            )

    async def remove(self, tenant: str, sha256: str) -> None:
        """Take the bytes away; what is not there is gone."""
        await self._delete(_path(tenant, sha256))

    async def sweep_incoming(self, before: datetime) -> int:
        """Take away what came in before a moment and never got a place: its process was ended."""
        left: list[str] = []
        async with _translated():
            async for page in obstore.list(self._store, prefix=INCOMING):
                left += [one["path"] for one in page if one["last_modified"] < before]
        for path in left:
            await self._delete(path)
        return len(left) + await to_thread.run_sync(self._sweep_unfinished, before.timestamp())

    def _sweep_unfinished(self, before: float) -> int:
        """Take away parts whose process was ended: a folder's store writes them to `name#1` and lists none of those."""
        if self._folder is None:
            return 0
        parts = (self._folder / INCOMING).glob("*#*")
        left = [part for part in parts if part.stat().st_mtime < before]
        for part in left:
            part.unlink(missing_ok=True)
        return len(left)

    async def keep_erasure(self, name: str, entry: bytes) -> None:
        """List an erasure beside the files, under its name, in place of what was listed there."""
        async with _translated():
            await obstore.put_async(self._store, f"{ERASURES}/{name}.json", entry)

    async def erasures(self) -> AsyncGenerator[tuple[str, bytes]]:
        """Give every erasure that is listed, with its name."""
        async with _translated():
            async for page in obstore.list(self._store, prefix=ERASURES):
                for one in page:
                    found = await obstore.get_async(self._store, one["path"])
                    name = one["path"].removeprefix(f"{ERASURES}/").removesuffix(".json")
                    yield name, bytes(await found.bytes_async())

    async def _delete(self, path: str) -> None:
        try:
            async with _translated():
                await obstore.delete_async(self._store, path)
        except ObjectGone:
            return


def _bucket(url: str) -> S3Store:
    """Open a bucket; the provider's own variables say its endpoint, region and keys (rules/service#settings)."""
    parts = urlsplit(url)
    options: Any = dict(OPTIONS)
    found = (os.environ.get(name) for name in ENDPOINTS)
    endpoint = urlsplit(next(filter(None, found), ""))
    # What is asked of a store on this machine needs no encryption on its way.
    if endpoint.scheme == "http" and is_loopback(endpoint.hostname or ""):
        options["allow_http"] = True
    prefix = parts.path.strip("/") or None
    return S3Store(parts.netloc, prefix=prefix, client_options=options, retry_config=RETRY)


def _path(tenant: str, sha256: str) -> str:
    """Say where bytes are; what is neither an id nor a sum leads nowhere."""
    if not (TENANT.fullmatch(tenant) and SUM.fullmatch(sha256)):
        raise ValueError("not an organization's id, or not a sha256")
    return f"{tenant}/{sha256[:2]}/{sha256}"


async def _read(found: Any) -> AsyncIterator[bytes]:
    async with _translated():
        async for chunk in found.stream(min_chunk_size=CHUNK_BYTES):
            yield bytes(chunk)


@asynccontextmanager
async def _translated() -> AsyncGenerator[None]:
    """Say in our words what went wrong at the store."""
    try:
        yield
    except FileNotFoundError as error:
        raise ObjectGone from error
    except (BaseError, OSError, TimeoutError) as error:
        raise ObjectsAway(type(error).__name__) from error
