"""What `tolsey restore-check` does: a restored database forgets again what was erased since its backup."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from tolsey.actors.job.messages import RunNow, job
from tolsey.http.clients.objects import Objects
from tolsey.runtime.clock import REAL_TIME
from tolsey.runtime.errors import DeadlineExceeded, ShardUnavailable
from tolsey.runtime.ids import new_id
from tolsey.service import running
from tolsey.settings import Settings
from tolsey.storage.commerce import identities
from tolsey.storage.database import Database
from tolsey.storage.lifecycle import erasure_list
from tolsey.storage.lifecycle.erasure_list import Entry

WAIT_SECONDS: Final = 60.0
"""How long a run is waited for at a time; it goes on, and is joined again."""
LEASES: Final = 3
AGAIN_AFTER_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What was found and done: erasures that are listed, those newer than the database, those left open."""

    listed: int
    newer: int
    left: int
    older_identities: int


async def check(
    database: Database, settings: Settings, folder: Path | None, *, dry_run: bool
) -> Restored:
    """Carry out again what is listed and the database does not know, and look once more."""
    entries = await _entries(settings, folder, keep=not dry_run)
    newer = [one for one in entries if await erasure_list.is_newer(database, one)]
    left = newer
    if newer and not dry_run:
        for entry in newer:
            async with database.transaction() as tx:
                await erasure_list.put_back(tx, entry)
        await _erase(settings)
        for entry in newer:
            async with database.transaction() as tx:
                await erasure_list.close_again(tx, entry)
        left = [one for one in newer if await erasure_list.is_newer(database, one)]
    older = identities.by_column(await identities.waiting(database))
    return Restored(
        listed=len(entries),
        newer=len(newer),
        left=len(left),
        older_identities=sum(older.values()),
    )


async def _entries(settings: Settings, folder: Path | None, *, keep: bool) -> list[Entry]:
    """Read what is listed at the object store, and in a folder with a copy of a newer list, which is kept there."""
    objects = Objects.of(settings.objects_url, settings.data_dir)
    found = {name: orjson.loads(entry) async for name, entry in objects.erasures()}
    if folder is not None:
        async for name, entry in Objects.in_folder(folder).erasures():
            copied = orjson.loads(entry)
            found[name] = erasure_list.further(copied, found.get(name, copied))
            if keep:
                await objects.keep_erasure(name, orjson.dumps(found[name]))
    return [found[name] for name in sorted(found)]


async def _erase(settings: Settings) -> None:
    """Run the job that erases, in a service of which nobody else asks anything."""
    async with running(settings, timers=False) as live:
        ask, run = live.service.runtime.ask, RunNow(new_id("run"), live.service.clock())
        unowned_until = REAL_TIME.monotonic() + settings.lease_seconds * LEASES
        while True:
            try:
                await ask(job("gdpr-erasure"), run, timeout=WAIT_SECONDS)
            except DeadlineExceeded:
                continue
            except ShardUnavailable:
                # The map is from the backup, and names processes of then until their leases have passed.
                if REAL_TIME.monotonic() > unowned_until:
                    raise
                await REAL_TIME.sleep(AGAIN_AFTER_SECONDS)
            else:
                return
