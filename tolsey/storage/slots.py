"""SQL for the ownership of slots: epochs are minted here and checked in every commit."""

from collections.abc import Sequence

from tolsey.storage.database import Database


async def claim(database: Database, owner: str) -> dict[int, int]:
    """Take every slot under a new epoch; whoever held one before can no longer commit."""
    rows = await database.fetch(
        "UPDATE slot_epochs SET epoch = epoch + 1, owner = $1, claimed_at = now()"
        " RETURNING slot, epoch",
        owner,
    )
    return {row["slot"]: row["epoch"] for row in rows}


async def versions(database: Database, kind: str, keys: Sequence[str]) -> dict[str, int]:
    """Read how far actors of a kind are; one that never committed is not among them."""
    rows = await database.fetch(
        "SELECT key, version FROM actors WHERE kind = $1 AND key = ANY($2)", kind, list(keys)
    )
    return {row["key"]: row["version"] for row in rows}
