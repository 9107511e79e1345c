"""The command line: `tolsey serve`, `migrate`, `doctor`, `admin create`, `sandbox`, `shards`."""

import contextlib
import gc
import os
import secrets
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click
import structlog

from tolsey import logs, settings
from tolsey.fleet import Fleet, Parent
from tolsey.listeners import Listeners
from tolsey.settings import Settings, SettingsError
from tolsey.storage.errors import StorageError, StorageUnavailable

if TYPE_CHECKING:
    from tolsey.service import Running  # what this drags in, only serving needs

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
    except StorageError as error:
        raise click.ClickException(str(error)) from None


def _has_uvloop() -> bool:
    try:
        import uvloop  # noqa: F401, PLC0415 - only whether it is there
    except ImportError:
        return False
    return True


@click.group()
@click.version_option(package_name="tolsey")
def main() -> None:
    """Run the operating hall of a commerce business."""
    try:
        logs.configure(os.environ.get("LOG_LEVEL") or "info")
    except ValueError as error:
        raise click.ClickException(f"LOG_LEVEL: {error}") from None


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
@click.option("--listener", type=int, hidden=True, help="Serve this inherited listener.")
@click.option("--parent", type=int, hidden=True, help="The line to the parent of the processes.")
def serve(host: str, port: int, shards: int, listener: int | None, parent: int | None) -> None:
    """Serve the application."""
    read = _settings()
    if listener is not None and parent is not None:
        sys.exit(_run(lambda: _serve(read, host, port, Parent(listener, parent))))
    if shards > 1:
        sys.exit(_supervise(host, port, shards))
    sys.exit(_run(lambda: _serve(read, host, port)))


def _supervise(host: str, port: int, shards: int) -> int:
    try:
        listeners = Listeners(host, port, shards)
    except OSError as error:
        raise click.ClickException(f"{host}:{port}: {error.strerror or error}") from None
    command = (sys.executable, *sys.orig_argv[1:])  # as we were found, so are they
    return Fleet(command, listeners, shards).run()


async def _serve(read: Settings, host: str, port: int, parent: Parent | None = None) -> int:
    from tolsey.server import serve_app, serve_listener  # noqa: PLC0415 - others need no server
    from tolsey.service import running  # noqa: PLC0415 - as above

    # What was imported stays for good, and a turn makes many short-lived values: collecting the
    # young less often took a fifth off a webhook's time.
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        await tasks.start(_watch_signals, stop, parent)
        try:
            async with running(read) as service:
                leave = partial(_leave, service, parent)
                serving = (
                    partial(serve_app, service.app, host, port)
                    if parent is None
                    else partial(serve_listener, service.app, parent.listener, ready=parent.ready)
                )
                await serving(stop, leave=leave, goodbye_seconds=GOODBYE_SECONDS)
        except Exception as error:
            log.exception("service.failed", error=repr(error))
            return 1
        finally:
            tasks.cancel_scope.cancel()
    if parent is None:
        log.info("service.stopped")
    return 0


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
    stop: anyio.Event,
    parent: Parent | None,
    *,
    task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        task_status.started()
        async for signum in signals:
            if parent is not None:
                stop.set()  # it bounds our end; whoever else signals us must not cut it short
                continue
            if stop.is_set():
                os._exit(1)  # the second signal means now
            log.info("service.stopping", signal=signum.name)
            stop.set()


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
def doctor() -> None:
    """Say which settings are missing and what answers 503 for it."""
    read = _settings()
    for variable, what in MISSING.items():
        if getattr(read, variable.lower()):
            word = "set"
        else:
            word = "default" if what.startswith(UNSET) else "MISSING"
        click.echo(f"{word:7}  {variable:28} {what}")


UNSET = "unset:"
"""Begins what is said of a setting that does well without a value."""

MISSING = {
    "DATABASE_URL": "unset: an embedded PostgreSQL under DATA_DIR",
    "REDIS_URL": "unset: an embedded Redis under DATA_DIR",
    "ENCRYPTION_KEYS": "unset: made once and kept in DATA_DIR (loopback only)",
    "CRON_SECRET": "/api/cron/* answers 503 without it",
    "METRICS_TOKEN": "/metrics answers 503 without it, but for this machine if BASE_URL is loopback",
    "TRUSTED_PROXIES": "behind a proxy all visitors count as one without it, unless BASE_URL is loopback",
    "COMMERCE_CLIENT_SECRET": "the three compliance webhooks answer 503 without it",
    "PAYMENTS_SECRET_KEY": "payment routes answer 503 without it",
    "PAYMENTS_WEBHOOK_SECRET": "/api/webhooks/payments answers 503 without it",
    **{
        f"PAYMENTS_PRICE_{plan}_{cadence}": "a checkout of it answers 503 without it"
        for plan in ("PRO", "MAX5", "MAX20")
        for cadence in ("MONTHLY", "YEARLY")
    },
    "LLM_BASE_URL": "/api/chat answers 503 without it",
    "LLM_MODEL": "/api/chat answers 503 without it",
    "VECTOR_URL": "unset: pgvector in our own database, the only one that the chat reads",
}


@main.group()
def admin() -> None:
    """Manage administrators."""


@admin.command("create")
@click.argument("email")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
def create_administrator(email: str, password_stdin: bool) -> None:
    """Make an administrator, and the administrators' organization when there is none.

    For an account that is there already it sets the password, and ends every session and agent.
    """
    from tolsey.http.api_model import read_account  # noqa: PLC0415 - only this command needs it
    from tolsey.storage.backing import addresses  # noqa: PLC0415 - as above
    from tolsey.storage.database import Database  # noqa: PLC0415 - as above
    from tolsey.storage.migrate import migrate as apply  # noqa: PLC0415 - as above
    from tolsey.storage.people import administrators  # noqa: PLC0415 - as above

    password = sys.stdin.readline().rstrip("\n") if password_stdin else secrets.token_urlsafe(15)
    try:
        account = read_account(email, password)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    read = _settings()

    async def go() -> Any:
        async with addresses(read) as (database_url, _):
            await apply(database_url)
            database = Database(database_url)
            await database.open()
            try:
                return await administrators.create_administrator(
                    database,
                    account.email,
                    account.password,
                    configured=read.admin_organization_id,
                )
            finally:
                await database.close()

    made = _run(go)
    click.echo(f"administrator {account.email} of organization {made.organization_id}")
    if not password_stdin:
        click.echo(f"password {password}")


@main.command()
@click.option("--port", default=8000, show_default=True, help="Where the service listens.")
@click.option("--platform-port", default=8001, show_default=True, help="Where the shop listens.")
@click.option("--payments-port", default=8002, show_default=True, help="And the payment processor.")
@click.option("--model-port", default=8003, show_default=True, help="And the language model.")
@click.option("--orders", default=1200, show_default=True, help="Orders in the demo history.")
@click.option("--data-dir", type=click.Path(path_type=Path), default=Path(".data/sandbox"))
@click.option("--once", is_flag=True, help="Show the journey and stop instead of serving on.")
def sandbox(
    *,
    port: int,
    platform_port: int,
    payments_port: int,
    model_port: int,
    orders: int,
    data_dir: Path,
    once: bool,
) -> None:
    """Start local stand-ins of the platforms and a demo organization, and show the main job."""
    from tolsey.demo.run import Demo  # noqa: PLC0415 - only this command needs it
    from tolsey.demo.standins import Ports  # noqa: PLC0415 - as above

    ports = Ports(port, platform_port, payments_port, model_port)
    sys.exit(_run(Demo(ports, orders, data_dir.resolve(), once=once).run))


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Write it for programs.")
def shards(as_json: bool) -> None:
    """Print which process owns which slots.

    It reads the map in PostgreSQL and the processes' beats in Redis, and needs none of the
    processes to answer. A process is `silent` when no beat of it was seen for LEASE_SECONDS, or when it
    ran on this machine and has ended; its slots are then among those that wait for an owner.
    """
    from tolsey.slot_map import SlotMap, read_map  # noqa: PLC0415 - only this command needs it
    from tolsey.storage.backing import addresses  # noqa: PLC0415 - as above

    read = _settings()

    async def go() -> SlotMap:
        async with addresses(read) as (database_url, redis_url):
            return await read_map(database_url, redis_url, read.lease_seconds)

    found: SlotMap = _run(go)
    click.echo(found.as_json() if as_json else found.as_text())


if __name__ == "__main__":
    main()
