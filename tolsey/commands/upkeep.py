"""What operators do to the data between two starts: migrations, keys, retention, a restore.

What a command needs is imported when it runs: nobody waits for what the others need.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tolsey.commands.base import on_database, read_settings, run
from tolsey.settings import Settings

if TYPE_CHECKING:
    from tolsey.storage.database import Database


@click.command()
def migrate() -> None:
    """Apply the migrations."""
    from tolsey.storage.backing import addresses  # noqa: PLC0415 - only this command needs it
    from tolsey.storage.migrate import migrate as apply  # noqa: PLC0415 - as above

    read = read_settings()

    async def go() -> list[str]:
        async with addresses(read) as (database_url, _):
            return await apply(database_url)

    applied = run(go)
    for name in applied:
        click.echo(f"applied {name}")
    click.echo(f"{len(applied)} migrations applied")


@click.command()
@click.option("--accept-keys", is_flag=True, help="Know the encryption keys at hand from now on.")
def doctor(accept_keys: bool) -> None:
    """Say what is set and reached, and what is not; ends with 1 when something needed is missing.

    With --accept-keys a service starts again whose keys are others than its data were sealed with.
    What the former keys sealed can then not be read any more: stores are to be connected again.
    """
    from tolsey.commands.doctor import examination  # noqa: PLC0415 - only this command needs it
    from tolsey.commands.doctor.findings import Finding  # noqa: PLC0415 - as above

    read = read_settings()

    async def go() -> list[Finding]:
        return [one async for one in examination.of_connections(read)]

    if accept_keys:
        _accept_keys(read)
    found = [*examination.of_settings(read), *run(go)]
    for word, name, what in found:
        click.echo(f"{word:7}  {name:28} {what}")
    sys.exit(any(one.is_bad for one in found))


def _accept_keys(read: Settings) -> None:
    from tolsey.storage.sealing import keys  # noqa: PLC0415 - only this command needs it

    accepted = on_database(read, lambda database: keys.accept(database, read))
    click.echo(f"accepted {', '.join(accepted.key_ids)}")
    for key_id in accepted.given_up:
        click.echo(f"given up {key_id}: what it sealed is to be entered again")


@click.command("rotate-keys")
def rotate_keys() -> None:
    """Seal anew, with the first of ENCRYPTION_KEYS, what the others sealed; stopped, it goes on where it was.

    Processes may serve meanwhile: what they have in memory they read anew before they write it. Run it
    again until it says that nothing is left: what waited for its turn comes as it was sealed. Then take the
    other keys out of ENCRYPTION_KEYS and run it once more: the data ask for them no longer.
    """
    from tolsey.storage.sealing import keys, rotation  # noqa: PLC0415 - only this command needs them

    read = read_settings()

    async def go(database: "Database") -> tuple[int, int]:
        for key_id in await keys.forget_unused(database, read):
            click.echo(f"forgot {key_id}: it seals nothing")
        for key_id, table, count in await keys.still_used(database, read):
            click.echo(
                f"{key_id} still seals {count} rows of {table}: they end, or are settled, first"
            )
        vault = await keys.open_vault(database, read)
        active = vault.key_ids[0]
        total = sum([await rotation.waiting(database, active, one) for one in rotation.COLUMNS])
        sealed = unopened = 0
        with click.progressbar(length=total, label=f"sealing with {active}") as bar:
            async for portion in rotation.rotate(database, vault):
                sealed, unopened = sealed + portion.sealed, unopened + portion.unopened
                bar.update(portion.sealed + portion.unopened)
        if sealed or unopened:
            await keys.note_rotation(database, active, sealed=sealed, unopened=unopened)
        return sealed, unopened

    sealed, unopened = on_database(read, go)
    click.echo(f"resealed {sealed} rows, {unopened} rows can't be opened with the present keys")
    sys.exit(1 if unopened else 0)


@click.command()
@click.option("--dry-run", is_flag=True, help="Only count what is due, by every rule.")
def retention(*, dry_run: bool) -> None:
    """Let go of rows that have served their time, as the jobs of every night do.

    Files, deleted stores and people who left are counted, and left to the jobs of the service.
    """
    from tolsey.commands import letting_go  # noqa: PLC0415 - only this command needs it

    on_database(read_settings(), letting_go.count if dry_run else letting_go.sweep)


@click.command("rehash-identities")
@click.option(
    "--store",
    "store_ids",
    multiple=True,
    metavar="ID",
    help="Of this store alone; may be said again.",
)
@click.option(
    "--page-size",
    type=click.IntRange(1, 10_000),
    help="About so many rows in one transaction.",
)
@click.option("--dry-run", is_flag=True, help="Only count what is left.")
def rehash_identities(*, store_ids: tuple[str, ...], page_size: int | None, dry_run: bool) -> None:
    """Name buyers by the pseudonyms of their stores where rows still hold the older global digest.

    Processes may serve meanwhile. Stopped, it goes on with what is left; ends with 1 while something is.
    """
    from tolsey.commands import rehashing  # noqa: PLC0415 - only this command needs it

    read = read_settings()
    left = on_database(
        read,
        lambda database: rehashing.rehash(
            database, read, list(store_ids) or None, page_size=page_size, dry_run=dry_run
        ),
    )
    sys.exit(1 if left else 0)


@click.command("restore-check")
@click.option(
    "--erasures",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder that holds a newer copy of `erasures` than the object store.",
)
@click.option("--dry-run", is_flag=True, help="Only count what the database does not know.")
def restore_check(*, folder: Path | None, dry_run: bool) -> None:
    """Forget again, in a database that was restored, what was erased since its backup.

    Run it before the service serves again; ends with 1 while something is left.
    """
    from tolsey.commands import restoring  # noqa: PLC0415 - only this command needs it

    read = read_settings()
    found = on_database(
        read, lambda database: restoring.check(database, read, folder, dry_run=dry_run)
    )
    click.echo(
        f"erasures listed {found.listed}, newer than the database {found.newer}, left {found.left}"
    )
    if found.older_identities:
        click.echo(
            f"rows with older identities {found.older_identities}: run tolsey rehash-identities"
        )
    sys.exit(1 if found.left else 0)
