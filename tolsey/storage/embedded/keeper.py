"""The process that owns a folder's servers: `python -m tolsey.storage.embedded.keeper FOLDER LINGER`.

Every user of the folder shares one lock. The keeper tries to take it alone, so the kernel tells it
when the last user is gone, by whatever end. Standard library only: it starts in a blink.
"""

import contextlib
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path

from tolsey.storage.embedded import locks
from tolsey.storage.embedded.home import SIGN_OF_LIFE, EmbeddedError, ServerHome
from tolsey.storage.embedded.processes import EmbeddedServer, PostgresServer, ValkeyServer

POLL_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0
STEADY_SECONDS = 60.0


class Keeper:
    """Keeps both servers up for as long as the folder has users, and `linger_seconds` more."""

    def __init__(self, home: ServerHome, linger_seconds: float) -> None:
        self._home = home
        self._linger_seconds = linger_seconds
        self._servers: tuple[EmbeddedServer, ...] = (ValkeyServer(home), PostgresServer(home))
        self._pause_seconds = POLL_SECONDS
        self._ready_at = 0.0
        self._retry_at = 0.0
        self._unused_since: float | None = None

    def hurry(self) -> None:
        """Do not linger; users that are there are not abandoned."""
        self._linger_seconds = 0.0

    def keep(self) -> None:
        """Return when the servers have stopped because nobody is left."""
        self._home.door.unlink(missing_ok=True)
        try:
            with socket.socket(socket.AF_UNIX) as door:
                door.bind(str(self._home.door))
                door.listen()
                self._start(self._servers)
                while not self._unused():
                    self._attend(door)
                    self._restore()
        finally:
            self._home.ready.unlink(missing_ok=True)
            for server in self._servers:
                server.ask_to_stop()
            for server in self._servers:
                server.wait_stopped()

    def _attend(self, door: socket.socket) -> None:
        """Let a moment pass, and give a sign of life to whoever asks for one meanwhile."""
        end = time.monotonic() + POLL_SECONDS
        while (left := end - time.monotonic()) > 0:
            if select.select([door], [], [], left)[0]:
                with contextlib.suppress(OSError), door.accept()[0] as asker:
                    asker.sendall(SIGN_OF_LIFE)

    def _start(self, servers: tuple[EmbeddedServer, ...]) -> None:
        """All forks are this thread's: the kernel's notice of a parent's death follows the thread."""
        for server in servers:
            server.start()
        for server in servers:
            server.wait()
        self._home.ready.write_text(f"{os.getpid()} {self._linger_seconds}\n")
        self._ready_at = time.monotonic()

    def _restore(self) -> None:
        """Start again what has ended by itself, with growing pauses."""
        ended = tuple(server for server in self._servers if not server.running)
        now = time.monotonic()
        if not ended:
            if now - self._ready_at > STEADY_SECONDS:
                self._pause_seconds = POLL_SECONDS
            return
        self._home.ready.unlink(missing_ok=True)
        if now < self._retry_at:
            return
        self._pause_seconds = min(self._pause_seconds * 2, LONGEST_PAUSE_SECONDS)
        try:
            self._start(ended)
        except EmbeddedError as error:
            say(str(error))
        self._retry_at = time.monotonic() + self._pause_seconds

    def _unused(self) -> bool:
        """Whether the end has come. Then both locks stay taken, so that nobody comes meanwhile."""
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            users = locks.attempt(self._home.lock("users"))
            if users is None:
                self._unused_since = None
                return False
            stack.callback(os.close, users)
            now = time.monotonic()
            self._unused_since = now if self._unused_since is None else self._unused_since
            if now - self._unused_since >= self._linger_seconds:
                if locks.attempt(self._home.lock("start")) is not None:
                    stack.pop_all()
                    return True
                self._unused_since = None  # somebody is at the door
        return False  # also when it cannot be looked at, as without a descriptor left


def say(sentence: str) -> None:
    """Write to the keeper's log, which is its standard error."""
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()


def main(folder: str, linger_seconds: str) -> int:
    """Keep the servers of a folder, away from the terminal and from the process that asked."""
    if os.fork():
        return 0  # the asker need not collect us, and its exit does not wait for us
    os.umask(0o077)  # a server's log may quote what it was told
    try:
        home = ServerHome.of(Path(folder))
        keeper = Keeper(home, float(linger_seconds))
        for ignored in (signal.SIGINT, signal.SIGHUP):
            signal.signal(ignored, lambda *_: None)  # unlike SIG_IGN, not inherited by the servers
        signal.signal(signal.SIGTERM, lambda *_: keeper.hurry())
        keeper.keep()
    except (EmbeddedError, OSError) as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
