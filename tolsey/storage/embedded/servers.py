"""The embedded servers as their users see them: both are up while a user of the folder is there."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tolsey.storage.embedded import locks
from tolsey.storage.embedded.home import SIGN_OF_LIFE, EmbeddedError, ServerHome, tail

START_SECONDS = 240.0
STOP_SECONDS = 120.0
GUARD_SECONDS = 0.5
ANSWER_SECONDS = 2.0


class EmbeddedServers:
    """The servers of a folder, up while this context or another of any process is open.

    Entering and leaving block: call them from a thread. The first to come says for how many
    seconds the servers outlive their last user; when for none, the last to leave returns when
    everything is stopped and on disk. Raises `EmbeddedError`.
    """

    def __init__(self, folder: Path, *, linger_seconds: float = 0.0) -> None:
        self._folder = folder
        self._linger_seconds = linger_seconds
        self._opened: ServerHome | None = None
        self._user: int | None = None
        self._leaving = threading.Event()
        self._guard: threading.Thread | None = None

    def __enter__(self) -> Self:
        try:
            self._opened = ServerHome.of(self._folder)
            self._opened.build()
            self._start()
        except OSError as error:
            self._release()
            raise EmbeddedError(f"The embedded servers cannot be kept here: {error}") from error
        except BaseException:
            self._release()
            raise
        self._leaving.clear()
        self._guard = threading.Thread(target=self._keep_up, name="embedded-servers", daemon=True)
        self._guard.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leaving.set()
        if self._guard is not None:
            self._guard.join()
        lingers = self._keeper_lingers()
        self._release()
        if not lingers:
            self._wait_stopped()

    @property
    def home(self) -> ServerHome:
        """The folders in use; they are elsewhere when the servers' user cannot enter the folder."""
        if self._opened is None:
            raise EmbeddedError("The embedded servers have not been started.")
        return self._opened

    @property
    def database_url(self) -> str:
        """What asyncpg connects to: a UNIX socket, as the superuser `postgres`."""
        return self.home.database_url

    @property
    def redis_url(self) -> str:
        """What redis-py connects to: a UNIX socket."""
        return self.home.redis_url

    def alive(self) -> bool:
        """Whether both servers are up; two system calls, so a health probe may ask."""
        return locks.owned(self.home.lock("keeper")) and self.home.ready.exists()

    def _start(self) -> None:
        """Become a user, and return once a keeper has both servers up."""
        start = locks.wait_for(self.home.lock("start"))
        try:
            if self._user is None:
                self._user = locks.wait_for(self.home.lock("users"), shared=True)
            end = time.monotonic() + START_SECONDS
            asked = False
            while not self._kept():
                if not locks.owned(self.home.lock("keeper")):
                    if asked:
                        log = tail(self.home.log("keeper"))
                        raise EmbeddedError(f"The embedded servers did not start: {log}")
                    self._call_keeper()
                    asked = True
                if time.monotonic() > end:
                    raise EmbeddedError(f"No embedded servers after {START_SECONDS:.0f} s.")
                time.sleep(0.003)
        finally:
            os.close(start)

    def _kept(self) -> bool:
        """Whether both are up and will stay: a killed keeper holds its lock a moment, but is mute."""
        if not self.alive():
            return False
        try:
            with socket.socket(socket.AF_UNIX) as asking:
                asking.settimeout(ANSWER_SECONDS)
                asking.connect(str(self.home.door))
                return asking.recv(len(SIGN_OF_LIFE)) == SIGN_OF_LIFE
        except OSError:
            return False

    def _call_keeper(self) -> None:
        """Start a keeper. It is born with its lock, so there is no moment without an owner."""
        self.home.ready.unlink(missing_ok=True)
        lock = locks.wait_for(self.home.lock("keeper"))
        code = str(Path(__file__).parents[3])  # the folder of the package, wherever we run
        path = os.pathsep.join(filter(None, (code, os.environ.get("PYTHONPATH"))))
        arguments = (str(self.home.folder), str(self._linger_seconds))
        try:
            self.home.log("keeper").touch(mode=0o600)
            with self.home.log("keeper").open("wb") as log:
                subprocess.run(  # noqa: S603 - our own interpreter and module
                    [sys.executable, "-P", "-m", "tolsey.storage.embedded.keeper", *arguments],
                    check=False,  # what went wrong is in the log, and the lock is free again
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd="/",
                    env={**os.environ, "PYTHONPATH": path},
                    start_new_session=True,
                    pass_fds=(lock,),
                    timeout=START_SECONDS,
                )
        finally:
            os.close(lock)

    def _keep_up(self) -> None:
        """Call another keeper when ours has been killed."""
        while not self._leaving.wait(GUARD_SECONDS):
            # What cannot be looked at or started now, as without a descriptor left, is tried again;
            # `alive` says no meanwhile.
            with contextlib.suppress(EmbeddedError, OSError):
                if not locks.owned(self.home.lock("keeper")):
                    self._start()

    def _release(self) -> None:
        if self._user is not None:
            os.close(self._user)
            self._user = None

    def _keeper_lingers(self) -> bool:
        try:
            return float(self.home.ready.read_text().split()[1]) > 0
        except (OSError, ValueError, IndexError):
            return False

    def _wait_stopped(self) -> None:
        """Return when the keeper is gone, or when somebody else uses the servers."""
        end = time.monotonic() + STOP_SECONDS
        while locks.owned(self.home.lock("keeper")) and time.monotonic() < end:
            if locks.shared(self.home.lock("users")):
                return
            time.sleep(0.005)
