"""`tolsey serve`: one process that serves, or the parent of several."""

import contextlib
import errno
import gc
import os
import signal
import socket
import sys
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import click
import structlog

from tolsey.commands.base import read_settings, run
from tolsey.commands.fleet import Fleet, Parent
from tolsey.listeners import Listeners, address_of
from tolsey.runtime.messages import UnusableName
from tolsey.setting_types import is_loopback
from tolsey.settings import Settings
from tolsey.storage.errors import StorageError

if TYPE_CHECKING:
    from tolsey.server import ServerName  # what this drags in, only who serves needs
    from tolsey.service import Running  # as above
    from tolsey.serving.acceptor import HttpServer  # as above

LEAVE_SECONDS = 10.0
GOODBYE_SECONDS = 0.5
"""How long clients with open connections have to hear that these end."""

log = structlog.get_logger()


@click.command()
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
    read = read_settings()
    if listener is not None and parent is not None:
        inherited, speaks = Parent(listener, parent), _server(server, read)
        with socket.socket(fileno=os.dup(listener)) as heard:
            located = read.listening_at(address_of(heard))
        sys.exit(run(lambda: _serve(located, inherited, speaks)))
    _refuse_strangers(read, host)
    listeners = _listen(host, port, shards)
    command = (sys.executable, *sys.orig_argv[1:])  # as we were found, so are those that follow
    if shards > 1:
        sys.exit(Fleet(command, listeners, shards).run())
    with listeners:
        speaks = _server(server, read)
        located = read.listening_at(listeners.address)
        status = run(lambda: _serve(located, listeners, speaks))
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
    if is_loopback(host):
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
    gc.disable()  # while the service is imported, as in `tolsey.__main__`
    from tolsey.server import serve_listener, serve_listeners  # noqa: PLC0415 - others need no server
    from tolsey.service import running  # noqa: PLC0415 - as above

    gc.enable()
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
