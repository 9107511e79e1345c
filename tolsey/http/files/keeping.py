"""Keeps files: their bytes in the object store, their rows beside it, and addresses that expire."""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from tolsey.http.clients.objects import Objects
from tolsey.storage import files
from tolsey.storage.database import Database
from tolsey.storage.records.files import FileRecord
from tolsey.storage.sealing.sealed import SealBroken, Vault

ADDRESS_SECONDS: Final = 60
"""How long an address of a file works (rules/requests#files)."""
LEFT_BEHIND: Final = timedelta(days=1)
"""What came in and has no place for longer has lost its process."""
ADDRESS: Final = {"table": "files", "column": "address", "row": "", "tenant": ""}
PATH: Final = "/api/files"


class FileKeeper:
    """Keeps, gives and takes away files."""

    def __init__(
        self,
        objects: Objects,
        database: Database,
        vault: Vault,
        base_url: str,
        clock: Callable[[], datetime],
    ) -> None:
        self._objects = objects
        self._database = database
        self._vault = vault
        self._base_url = base_url
        self._clock = clock

    async def keep(
        self, chunks: AsyncIterator[bytes], most_bytes: int, row: Callable[[str, int], FileRecord]
    ) -> FileRecord:
        """Keep bytes as they come; `row` says what of them is written down when their sum is known.

        Raises FileTooLarge, and ObjectsAway; then nothing is kept.
        """
        incoming = await self._objects.take_in(chunks, most_bytes)
        file = row(incoming.sha256, incoming.size)
        async with self._database.transaction() as tx:
            await files.hold(tx, file.organization_id, file.sha256)
            await self._objects.settle(incoming, file.organization_id)
            await files.add(tx, file)
        await self._objects.drop(incoming)
        return file

    async def find(self, file_id: str) -> FileRecord | None:
        """Find a file that has not served its time."""
        file = await files.find(self._database, file_id)
        return file if file is not None and file.expires_at > self._clock() else None

    async def read(self, file: FileRecord) -> AsyncIterator[bytes]:
        """Give a file's bytes as they are read. Raises ObjectGone, and ObjectsAway."""
        return await self._objects.read(file.organization_id, file.sha256)

    async def address(self, file: FileRecord) -> tuple[str, datetime]:
        """Sign an address of a file, and tell when it expires: whoever has it may read the file until then."""
        until = self._clock().replace(microsecond=0) + timedelta(seconds=ADDRESS_SECONDS)
        signed = await self._objects.address(
            file.organization_id, file.sha256, seconds=ADDRESS_SECONDS
        )
        if signed is None:
            token = self._vault.seal(f"{file.id} {int(until.timestamp())}", **ADDRESS)
            signed = f"{self._base_url}{PATH}/{file.id}/content?token={token}"
        return signed, until

    def is_signed(self, file_id: str, token: str) -> bool:
        """Tell whether we gave an address of this file out, and it has not expired."""
        try:
            said, _, until = self._vault.open(token, **ADDRESS).partition(" ")
        except SealBroken:
            return False
        return said == file_id and self._clock() < datetime.fromtimestamp(int(until), UTC)

    async def remove(self, file: FileRecord) -> None:
        """Take a file away, and its bytes with the last file that has them. Raises ObjectsAway."""
        async with self._database.transaction() as tx:
            await files.hold(tx, file.organization_id, file.sha256)
            if await files.remove(tx, file):
                await self._objects.remove(file.organization_id, file.sha256)

    async def sweep(self, limit: int) -> int:
        """Take away a batch of files that have served their time, and what was left behind coming in."""
        due = await files.expired(self._database, self._clock(), limit)
        for file in due:
            await self.remove(file)
        if len(due) < limit:
            await self._objects.sweep_incoming(self._clock() - LEFT_BEHIND)
        return len(due)
