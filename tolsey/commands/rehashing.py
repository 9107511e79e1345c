"""What `tolsey rehash-identities` shows in a terminal and writes into the log."""

from collections.abc import Sequence
from contextlib import aclosing
from typing import Final

import click
import structlog

from tolsey.actors.store.rehashing.effects import PAGE_SIZE, Rehashing
from tolsey.runtime.clock import REAL_TIME
from tolsey.settings import Settings
from tolsey.storage import audit
from tolsey.storage.commerce import identities
from tolsey.storage.database import Database
from tolsey.storage.sealing import keys
from tolsey.storage.sealing.sealed import SealBroken

TELL_EVERY_SECONDS: Final = 10.0

log = structlog.get_logger()


async def rehash(
    database: Database,
    settings: Settings,
    store_ids: Sequence[str] | None,
    *,
    page_size: int | None,
    dry_run: bool,
) -> int:
    """Move what is left, with a bar and counters; answer how many rows are left then."""
    waiting = await identities.waiting(database, store_ids)
    columns = identities.by_column(waiting)
    total = sum(columns.values())
    if dry_run:
        for name, rows in columns.items():
            click.echo(f"{name:32} {rows}")
        return total
    vault = await keys.open_vault(database, settings)
    rehashing = Rehashing(database, vault)
    moved, unopened, told_at = 0, 0, REAL_TIME.monotonic()
    with click.progressbar(length=total, label="rehashing") as bar:
        for shop_key in waiting:
            try:
                async with aclosing(rehashing.of_shop(shop_key, page_size or PAGE_SIZE)) as pages:
                    async for rows in pages:
                        moved += rows
                        bar.update(rows)
                        if REAL_TIME.monotonic() - told_at >= TELL_EVERY_SECONDS:
                            log.info("identities.progress", rehashed=moved, total=total)
                            told_at = REAL_TIME.monotonic()
            except SealBroken:
                unopened += 1
                log.warning("identities.salt_unopened", shop_key=shop_key)
    left = sum(identities.by_column(await identities.waiting(database, store_ids)).values())
    if moved:
        async with database.transaction() as tx:
            await audit.write(
                tx,
                "identities.rehashed",
                "rehash-identities",
                actor="operator",
                reason="tolsey rehash-identities",
                rows=moved,
            )
    log.info("identities.rehashed", rehashed=moved, left=left, unopened=unopened)
    click.echo(f"rehashed {moved}, left {left}, shops whose salt no key at hand opens {unopened}")
    return left
