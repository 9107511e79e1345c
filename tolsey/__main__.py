"""The command line: `tolsey serve`, `migrate`, `doctor`, `admin create`, `sandbox`, `shards`."""

# ruff: noqa: E402
import signal

# Until a command runs there is nothing to end in order, and nothing that is older than a reload.
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, lambda *_: None)

import contextlib
import errno
import gc
import os
import secrets
import socket
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import anyio
import anyio.lowlevel
import click
import structlog

from tolsey import logs, settings
from tolsey.commands.fleet import Fleet, Parent
from tolsey.listeners import Listeners, address_of
from tolsey.runtime.messages import UnusableName
from tolsey.settings import Settings, SettingsError
from tolsey.storage.errors import StorageError, StorageUnavailable

if TYPE_CHECKING:
    from tolsey.server import ServerName  # what this drags in, only serving needs
    from tolsey.service import Running  # as above
    from tolsey.serving.acceptor import HttpServer  # as above
    from tolsey.storage.database import Database

Result = TypeVar("Result")

LEAVE_SECONDS = 10.0
GOODBYE_SECONDS = 0.5
"""How long clients with open connections have to hear that these end."""

log = structlog.get_logger()


def _settings(**given: Any) -> Settings:
    try:
        return settings.read(**given)
    except SettingsError as error:
        raise click.ClickException(str(error)) from None


def _run(main: Callable[[], Awaitable[Any]]) -> Any:
    """Run on uvloop where it is installed: queued turns cost a third less on it."""
    try:
        return anyio.run(main, backend="asyncio", backend_options={"use_uvloop": _has_uvloop()})
    except StorageUnavailable as error:
        raise click.ClickException(f"The database is out of reach: {error}") from None
    except (StorageError, UnusableName) as error:
        raise click.ClickException(str(error)) from None


def _has_uvloop() -> bool:
    try:
        import uvloop  # noqa: F401, PLC0415 - only whether it is there
    except ImportError:
        return False
    return True


@click.group()
@click.version_option(package_name="tolsey")
@click.pass_context
def main(context: click.Context) -> None:
    """Run the operations of a commerce business."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if context.invoked_subcommand != serve.name:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        logs.configure(os.environ.get("LOG_LEVEL") or "info")
    except ValueError as error:
        raise click.ClickException(f"LOG_LEVEL: {error}") from None
    logs.tell_last_words()


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535))
@click.option(
    "--shards",
    default=1,
    show_default=True,
    type=click.IntRange(1, 256),
    help="Processes behind the port.",
)
@click.option(
    "--server",
    default="hypercorn",
    show_default=True,
    type=click.Choice(["hypercorn", "uvicorn"]),
    help="What speaks HTTP; uvicorn comes with the extra of its name.",
)
@click.option("--listener", type=int, hidden=True, help="Serve this inherited listener.")
@click.option("--parent", type=int, hidden=True, help="The line to the parent of the processes.")
def serve(
    *,
    host: str,
    port: int,
    shards: int,
    server: "ServerName",
    listener: int | None,
    parent: int | None,
) -> None:
    """Serve the application."""
    read = _settings()
    if listener is not None and parent is not None:
        inherited, speaks = Parent(listener, parent), _server(server, read)
        with socket.socket(fileno=os.dup(listener)) as heard:
            located = read.listening_at(address_of(heard))
        sys.exit(_run(lambda: _serve(located, inherited, speaks)))
    _refuse_strangers(read, host)
    listeners = _listen(host, port, shards)
    command = (sys.executable, *sys.orig_argv[1:])  # as we were found, so are those that follow
    if shards > 1:
        sys.exit(Fleet(command, listeners, shards).run())
    with listeners:
        speaks = _server(server, read)
        located = read.listening_at(listeners.address)
        status = _run(lambda: _serve(located, listeners, speaks))
    if status is None:
        os.execv(sys.executable, command)  # noqa: S606 - our own interpreter and arguments
    sys.exit(status)


def _server(name: "ServerName", read: Settings) -> "HttpServer":
    """Answer what speaks HTTP, or say what it lacks."""
    from tolsey.server import ServerUnavailable, chosen  # noqa: PLC0415 - others need no server

    try:
        return chosen(name, cleartext_http2=read.cleartext_http2)
    except ServerUnavailable as error:
        raise click.ClickException(str(error)) from None


def _refuse_strangers(read: Settings, host: str) -> None:
    """Let other machines in only to a service that was told its address and its keys.

    Keys that were made are for loopback alone (rules/service#encryption-keys).
    """
    if settings.is_loopback(host):
        return
    if read.is_local:
        raise click.ClickException(f"BASE_URL: must be the public address when --host is {host}")
    if read.encryption_keys is None:
        raise click.ClickException(f"ENCRYPTION_KEYS: must be set when --host is {host}")


def _listen(host: str, port: int, shards: int) -> Listeners:
    """Take the port before anything else starts."""
    try:
        return Listeners(host, port, shards)
    except OSError as error:
        why = str(error.strerror or error)
        if error.errno == errno.EADDRINUSE:
            why = "another program listens there. End it, or choose another --port."
        raise click.ClickException(f"{host}:{port}: {why}") from None


@dataclass(eq=False)
class ProcessEnd:
    """What signals asked of this process, and the start that they cut short."""

    asked: anyio.Event = field(default_factory=anyio.Event)
    start: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    begun: bool = False
    again: bool = False
    """Whether it starts anew after its end, with the settings and the code as they are then."""

    def ask(self) -> None:
        """End in order, or at once when nothing is served yet."""
        self.asked.set()
        if not self.begun:
            self.start.cancel()


async def _serve(read: Settings, place: Listeners | Parent, server: "HttpServer") -> int | None:
    """Answer an exit status, or None when this process is to be followed by a new one."""
    parent = place if isinstance(place, Parent) else None
    ending = ProcessEnd()
    failure: StorageError | UnusableName | None = None
    async with anyio.create_task_group() as tasks:
        await tasks.start(_watch_signals, ending, parent)
        try:
            with ending.start:
                await _serve_until(read, place, server, ending)
        except (StorageError, UnusableName) as error:
            failure = error  # raised below: a group would wrap it
        except Exception as error:
            log.exception("service.failed", error=repr(error))
            return 1
        finally:
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    if parent is None:
        log.info("service.stopped")
    return None if ending.again else 0


async def _serve_until(
    read: Settings, place: Listeners | Parent, server: "HttpServer", ending: ProcessEnd
) -> None:
    from tolsey.server import serve_listener, serve_listeners  # noqa: PLC0415 - others need no server
    from tolsey.service import running  # noqa: PLC0415 - as above

    # What was imported stays for good, and a turn makes many short-lived values: collecting the
    # young less often took a fifth off a webhook's time.
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    await anyio.lowlevel.checkpoint()  # a signal that came meanwhile
    async with running(read) as service:
        ending.begun = True
        serving = (
            partial(serve_listener, service.app, place.listener, ready=place.ready)
            if isinstance(place, Parent)
            else partial(serve_listeners, service.app, place)
        )
        leave = partial(_leave, service, place if isinstance(place, Parent) else None)
        await serving(ending.asked, leave=leave, goodbye_seconds=GOODBYE_SECONDS, server=server)


async def _leave(service: "Running", parent: Parent | None) -> None:
    """Give the actors to the other processes while this one still passes on what it is asked.

    Answers of the chat are given a while to end, and then end while they can still be told.
    Readiness turns red, but not behind a common port, where a probe would meet us by chance.
    """
    service.service.chat.retire()
    if parent is None:
        service.service.runtime.retire()
    with contextlib.suppress(StorageError), anyio.move_on_after(LEAVE_SECONDS):
        await service.service.shard.leave()


async def _watch_signals(
    ending: ProcessEnd,
    parent: Parent | None,
    *,
    task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    has_terminal = os.isatty(0)
    heard = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    with anyio.open_signal_receiver(*heard) as signals:
        task_status.started()
        async for signum in signals:
            if parent is not None:
                ending.ask()  # it bounds our end; whoever else signals us must not cut it short
                continue
            hung_up = signum is signal.SIGHUP and has_terminal and not os.isatty(0)
            if ending.asked.is_set():
                if signum is signal.SIGHUP and not hung_up:
                    continue  # it is about to start anew, or to end for good
                os._exit(1)  # the second signal means now
            ending.again = signum is signal.SIGHUP and not hung_up
            log.info("service.stopping", signal=signum.name)
            ending.ask()


@main.command()
def migrate() -> None:
    """Apply the migrations."""
    from tolsey.storage.backing import addresses  # noqa: PLC0415 - only this command needs it
    from tolsey.storage.migrate import migrate as apply  # noqa: PLC0415 - as above

    read = _settings()

    async def go() -> list[str]:
        async with addresses(read) as (database_url, _):
            return await apply(database_url)

    applied = _run(go)
    for name in applied:
        click.echo(f"applied {name}")
    click.echo(f"{len(applied)} migrations applied")


@main.command()
@click.option("--accept-keys", is_flag=True, help="Know the encryption keys at hand from now on.")
def doctor(accept_keys: bool) -> None:
    """Say what is set and reached, and what is not; ends with 1 when something needed is missing.

    With --accept-keys a service starts again whose keys are others than its data were sealed with.
    What the former keys sealed can then not be read any more: stores are to be connected again.
    """
    from tolsey.commands import doctor as examination  # noqa: PLC0415 - only this command needs it

    read = _settings()

    async def go() -> list[examination.Finding]:
        return [one async for one in examination.of_connections(read)]

    if accept_keys:
        _accept_keys(read)
    found = [*examination.of_settings(read), *_run(go)]
    for word, name, what in found:
        click.echo(f"{word:7}  {name:28} {what}")
    sys.exit(any(one.is_bad for one in found))


def _accept_keys(read: Settings) -> None:
    from tolsey.storage.sealing import keys  # noqa: PLC0415 - only this command needs it

    accepted = _on_database(read, lambda database: keys.accept(database, read))
    click.echo(f"accepted {', '.join(accepted.key_ids)}")
    for key_id in accepted.given_up:
        click.echo(f"given up {key_id}: what it sealed is to be entered again")


def _on_database(read: Settings, act: Callable[["Database"], Awaitable[Result]]) -> Result:
    """Act on the service's database, brought up to date."""
    from tolsey.storage.backing import addresses  # noqa: PLC0415 - only commands like this need it
    from tolsey.storage.database import Database  # noqa: PLC0415 - as above
    from tolsey.storage.migrate import migrate as apply  # noqa: PLC0415 - as above

    async def go() -> Result:
        async with addresses(read) as (database_url, _):
            await apply(database_url)
            database = Database(database_url)
            await database.open()
            try:
                return await act(database)
            finally:
                await database.close()

    done: Result = _run(go)
    return done


@main.command("rotate-keys")
def rotate_keys() -> None:
    """Seal anew, with the first of ENCRYPTION_KEYS, what the others sealed; stopped, it goes on where it was.

    Processes may serve meanwhile. Run it again until it says that nothing is left: what a process
    had in memory is written as it was. Then take the other keys out of ENCRYPTION_KEYS and run it
    once more: the data ask for them no longer.
    """
    from tolsey.storage.sealing import keys, rotation  # noqa: PLC0415 - only this command needs them

    read = _settings()

    async def go(database: "Database") -> tuple[int, int]:
        for key_id in await keys.forget_unused(database, read):
            click.echo(f"forgot {key_id}: it seals nothing")
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

    sealed, unopened = _on_database(read, go)
    click.echo(f"sealed anew {sealed}, not to be opened by any key at hand {unopened}")
    sys.exit(1 if unopened else 0)


@main.command()
@click.option("--dry-run", is_flag=True, help="Only count what is due, by every rule.")
def retention(*, dry_run: bool) -> None:
    """Let go of rows that have served their time, as the jobs of every night do.

    Files, deleted stores and people who left are counted, and left to the jobs of the service.
    """
    from tolsey.commands import letting_go  # noqa: PLC0415 - only this command needs it

    _on_database(_settings(), letting_go.count if dry_run else letting_go.sweep)


@main.command("rehash-identities")
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

    read = _settings()
    left = _on_database(
        read,
        lambda database: rehashing.rehash(
            database, read, list(store_ids) or None, page_size=page_size, dry_run=dry_run
        ),
    )
    sys.exit(1 if left else 0)


@main.command("restore-check")
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

    read = _settings()
    found = _on_database(
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


@main.group()
def admin() -> None:
    """Manage administrators."""


@admin.command("create")
@click.argument("email")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@click.option("--existing", is_flag=True, help="Let a user administrate who has an account.")
def create_administrator(email: str, password_stdin: bool, existing: bool) -> None:
    """Make an administrator, and the administrators' organization when there is none.

    With --existing it is a user who is there already: the password is set, and every session and agent
    of theirs ends.
    """
    from tolsey.http.web.api_model import read_account  # noqa: PLC0415 - only this command needs it
    from tolsey.storage.people import administrators  # noqa: PLC0415 - as above

    password = sys.stdin.readline().rstrip("\n") if password_stdin else secrets.token_urlsafe(15)
    try:
        account = read_account(email, password)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    read = _settings()
    made = _on_database(
        read,
        lambda database: administrators.create_administrator(
            database,
            account.email,
            account.password,
            configured=read.admin_organization_id,
            existing=existing,
        ),
    )
    click.echo(f"administrator {account.email} of organization {made.organization_id}")
    if not password_stdin:
        click.echo(f"password {password}")


@main.command("verify-bundle")
@click.argument("file", type=click.File("rb"))
@click.option(
    "--roots",
    type=click.File("rb"),
    help="The service's /.well-known/esign-roots.json, as you or somebody you trust fetched it.",
)
def verify_bundle(*, file: BinaryIO, roots: BinaryIO | None) -> None:
    """Check the evidence of a signature without the service; ends with 1 and names the first part that is broken.

    With --roots the bundle's root has to be one that was published, which whoever could write all of the
    bundle anew cannot forge.
    """
    from tolsey.http.deals.evidence import bundle, checking  # noqa: PLC0415 - only this command needs it

    try:
        files = bundle.unzipped(file)
        said = checking.check(files)
        if roots is not None:
            checking.require_published(files, roots.read())
    except checking.EvidenceBroken as broken:
        click.echo(f"BROKEN: {broken}")
        sys.exit(1)
    root = said["root"]
    click.echo(f"WHOLE: {said['documentType']} {said['id']}, {said['status']}")
    for one in said["signers"]:
        click.echo(f"signed by {one['name']} for the {one['role']}, {one['signedAt']}")
    if root is None:
        click.echo(f"{said['id']} {checking.UNANCHORED}.")
    elif roots is None:
        where = "compare it with the list at /.well-known/esign-roots.json, or give that as --roots"
        click.echo(f"under the root of {root['day']}, by the key {root['keyId']}: {where}.")
    else:
        click.echo(f"under the root of {root['day']}, which was published.")


@main.command()
@click.option("--port", default=8000, show_default=True, help="Where the service listens.")
@click.option("--platform-port", default=8001, show_default=True, help="Where the shop listens.")
@click.option("--payments-port", default=8002, show_default=True, help="And the payment processor.")
@click.option("--model-port", default=8003, show_default=True, help="And the language model.")
@click.option("--orders", default=1200, show_default=True, help="Orders in the demo history.")
@click.option("--data-dir", type=click.Path(path_type=Path), default=Path(".data/sandbox"))
@click.option("--once", is_flag=True, help="Show the journey and stop instead of serving on.")
@click.option(
    "--launch", is_flag=True, help="Launch a store from an empty shop; a key does what people do."
)
@click.option(
    "--competitors", is_flag=True, help="Watch the storefronts that a store competes with."
)
def sandbox(
    *,
    port: int,
    platform_port: int,
    payments_port: int,
    model_port: int,
    orders: int,
    data_dir: Path,
    once: bool,
    launch: bool,
    competitors: bool,
) -> None:
    """Start local stand-ins of the platforms and a demo organization, and show the main job."""
    try:
        from tolsey.demo.run import Demo  # noqa: PLC0415 - an extra
        from tolsey.demo.standins import Ports  # noqa: PLC0415 - as above
    except ImportError as error:
        raise click.ClickException("Install it first: pip install 'tolsey[sandbox]'.") from error

    ports = Ports(port, platform_port, payments_port, model_port)
    shown = Demo(
        ports, orders, data_dir.resolve(), once=once, launch=launch, competitors=competitors
    )
    sys.exit(_run(shown.run))


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Write it for programs.")
def shards(as_json: bool) -> None:
    """Print which process owns which slots.

    It reads the map in PostgreSQL and the processes' beats in Redis, and needs none of the
    processes to answer. A process is `silent` when no beat of it was seen for LEASE_SECONDS, or when it
    ran on this machine and has ended; its slots are then among those that wait for an owner.
    """
    from tolsey.commands.slot_map import SlotMapView, read_map  # noqa: PLC0415 - only this command needs it
    from tolsey.storage.backing import addresses  # noqa: PLC0415 - as above

    read = _settings()

    async def go() -> SlotMapView:
        async with addresses(read) as (database_url, redis_url):
            return await read_map(database_url, redis_url, read.lease_seconds)

    found: SlotMapView = _run(go)
    click.echo(found.as_json() if as_json else found.as_text())


if __name__ == "__main__":
    main()
