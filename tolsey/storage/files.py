"""SQL for files; whoever adds or takes away bytes holds their lock meanwhile."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from tolsey.storage.conditions import Conditions
from tolsey.storage.database import Reader, Transaction
from tolsey.storage.lookups import record, records
from tolsey.storage.records.files import FileRecord
from tolsey.storage.tables import table_of

FILES: Final = table_of(FileRecord)


async def hold(tx: Transaction, organization_id: str, sha256: str) -> None:
    """Let no one else add or take away these bytes of an organization until the transaction ends."""
    await tx.execute(
        "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", f"files/{organization_id}/{sha256}"
    )


async def add(tx: Transaction, file: FileRecord) -> None:
    """Keep the row of a file; one that is there stays as it is."""
    await tx.execute(f"{FILES.insert} ON CONFLICT (id) DO NOTHING", *FILES.values_of(file))


async def remove(tx: Transaction, file: FileRecord) -> bool:
    """Take the row of a file away; True when no other file has its bytes."""
    await tx.execute("DELETE FROM files WHERE id = $1", file.id)
    other = await tx.fetchrow(
        "SELECT FROM files WHERE organization_id = $1 AND sha256 = $2 LIMIT 1",
        file.organization_id,
        file.sha256,
    )
    return other is None


async def find(reader: Reader, file_id: str) -> FileRecord | None:
    """Read a file's row."""
    return await record(reader, FILES, "id = $1", file_id)


async def among(reader: Reader, file_ids: Sequence[str]) -> dict[str, FileRecord]:
    """Read the rows of files by their ids; one that is gone is absent."""
    found = await records(reader, FILES, "id = ANY($1::text[])", list(file_ids))
    return {one.id: one for one in found}


async def page_of_store(
    reader: Reader, store_id: str, purpose: str, *, after: str | None, at: datetime, limit: int
) -> list[FileRecord]:
    """List the files of a purpose that are kept for a store, newest first."""
    wanted = Conditions(store_id, purpose, at, limit)
    wanted.add("id < {}", after)
    where = f"store_id = $1 AND purpose = $2 AND expires_at > $3 AND {wanted}"
    return await records(reader, FILES, f"{where} ORDER BY id DESC LIMIT $4", *wanted.args)


async def expired(reader: Reader, at: datetime, limit: int) -> list[FileRecord]:
    """List files that have served their time, the oldest first."""
    return await records(reader, FILES, "expires_at <= $1 ORDER BY expires_at LIMIT $2", at, limit)
