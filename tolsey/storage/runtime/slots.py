"""SQL for the ownership of slots: epochs are minted here and checked in every commit.

Every change of an owner is a compare-and-set of the epoch, so of two processes that want a slot
one gets it, and whoever held it before can no longer commit.
"""

from collections.abc import Mapping, Sequence

from tolsey.storage.database import Database
from tolsey.storage.records.runtime.slots import Holding


class Slots:
    """The map of slots on disk."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self) -> dict[int, Holding]:
        """Read who holds each of the 1,024 slots, and how often they had beaten by then."""
        # A line for each holder: every process reads this several times in each lease.
        rows = await self._database.fetch(
            "SELECT owner, pinned_to, beat, array_agg(slot), array_agg(epoch)"
            " FROM slot_epochs LEFT JOIN process_beats ON process = owner GROUP BY 1, 2, 3"
        )
        return {
            slot: Holding(epoch, owner, pinned_to, beat)
            for owner, pinned_to, beat, slots, epochs in rows
            for slot, epoch in zip(slots, epochs, strict=True)
        }

    async def beat(self, process: str, number: int) -> None:
        """Write down how often a process has beaten."""
        await self._database.execute(
            "INSERT INTO process_beats (process, beat) VALUES ($1, $2) ON CONFLICT (process)"
            " DO UPDATE SET beat = excluded.beat, beaten_at = now()",
            process,
            number,
        )

    async def forget(self, process: str) -> None:
        """Take the beats of a process away that is gone."""
        await self._database.execute("DELETE FROM process_beats WHERE process = $1", process)

    async def take(
        self, owner: str | None, seen: Mapping[int, int], *, from_owner: str | None = None
    ) -> dict[int, int]:
        """Give slots to an owner, or to nobody, where the epoch is still the one that was seen.

        With `from_owner` only what that process holds. Answers the new epochs of the slots that
        changed hands. It waits for commits under the old epochs that are on their way.
        """
        rows = await self._database.fetch(
            """
            WITH seen AS MATERIALIZED (SELECT * FROM unnest($2::int[], $3::bigint[]) w(slot, epoch)),
            mine AS MATERIALIZED (
                SELECT s.slot FROM slot_epochs s JOIN seen w ON s.slot = w.slot AND s.epoch = w.epoch
                WHERE $4::text IS NULL OR s.owner = $4 ORDER BY s.slot FOR NO KEY UPDATE OF s)
            UPDATE slot_epochs s SET epoch = s.epoch + 1, owner = $1, claimed_at = now()
            FROM mine WHERE s.slot = mine.slot RETURNING s.slot, s.epoch
            """,
            owner,
            list(seen),
            list(seen.values()),
            from_owner,
        )
        return {row["slot"]: row["epoch"] for row in rows}

    async def release(self, owner: str) -> None:
        """Give every slot of an owner to nobody; it waits for commits under the old epochs."""
        await self._database.execute(
            """
            WITH mine AS MATERIALIZED (
                SELECT slot FROM slot_epochs WHERE owner = $1 ORDER BY slot FOR NO KEY UPDATE)
            UPDATE slot_epochs s SET epoch = s.epoch + 1, owner = NULL, claimed_at = now()
            FROM mine WHERE s.slot = mine.slot
            """,
            owner,
        )

    async def pin(self, slot: int, process: str | None) -> None:
        """Keep a slot with a process for as long as that lives."""
        await self._database.execute(
            "UPDATE slot_epochs SET pinned_to = $2 WHERE slot = $1", slot, process
        )

    async def deployment(self) -> str:
        """Name this deployment: the keys that it has in a Redis it may share begin with it.

        The number of the database is part of it, so that a copy is a deployment of its own.
        """
        row = await self._database.fetchrow(
            "SELECT id::text, (SELECT oid FROM pg_database WHERE datname = current_database())"
            " AS oid FROM deployment"
        )
        if row is None:
            raise LookupError("the deployment has no name")
        return f"{row['id'][:8]}-{row['oid']}"


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


async def reply_of(database: Database, kind: str, key: str, message_id: str) -> str | None:
    """Read what an ask from another process was answered; none when it took no effect."""
    row = await database.fetchrow(
        "SELECT reply FROM actor_journal WHERE message_id = $3 AND reply IS NOT NULL"
        " AND kind = $1 AND key = $2 LIMIT 1",
        kind,
        key,
        message_id,
    )
    return row["reply"] if row else None
