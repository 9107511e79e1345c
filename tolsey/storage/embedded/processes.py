"""The two embedded servers as programs: how each is started, asked whether it answers, stopped."""

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from tolsey.storage.embedded import binaries, locks
from tolsey.storage.embedded.home import EmbeddedError, ServerHome, tail

START_SECONDS = 120.0  # recovery after a crash replays up to max_wal_size
STOP_SECONDS = 60.0
LARGEST_LOG = 4 << 20

POSTGRES_SETTINGS = {
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "shared_buffers": "128MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
    "jit": "off",
    "logging_collector": "off",
    "cluster_name": "tolsey",
}
"""Durable, alone on its machine, and for many short statements rather than long ones."""


class EmbeddedServer(ABC):
    """One server of a home. All that is alive of it holds its lock, which it inherits."""

    name: str
    gentle: signal.Signals
    """The signal at which it ends sessions, writes everything down and goes."""

    def __init__(self, home: ServerHome) -> None:
        self.home = home
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def prepare(self) -> list[str]:
        """Make what it needs on disk; answer its command line."""

    @abstractmethod
    def answers(self) -> bool:
        """Whether it can be used."""

    @property
    @abstractmethod
    def pid_file(self) -> Path:
        """Where it says which process it is."""

    @property
    def running(self) -> bool:
        """Whether the process started last is still there."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process, once nothing of an earlier one is left."""
        lock = self._evict()
        try:
            command = self.prepare()
            with self._log().open("ab") as log:
                self._process = subprocess.Popen(  # noqa: S603 - our own command
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=self.home.folder,
                    env=environment(),
                    start_new_session=True,
                    pass_fds=(lock,),
                    preexec_fn=_die_with_parent(self.gentle),  # noqa: PLW1509 - the keeper has one thread
                    **self.home.identity(),
                )
        except (OSError, subprocess.SubprocessError) as error:
            raise EmbeddedError(f"{self.name} cannot be started: {error}") from error
        finally:
            os.close(lock)

    def wait(self) -> None:
        """Return as soon as it answers."""
        end = time.monotonic() + START_SECONDS
        while not self.answers():
            if not self.running:
                raise EmbeddedError(f"{self.name} ended: {tail(self.home.log(self.name))}")
            if time.monotonic() > end:
                raise EmbeddedError(f"{self.name} does not answer after {START_SECONDS:.0f} s.")
            time.sleep(0.003)

    def ask_to_stop(self) -> None:
        """Tell it to end, if it runs."""
        if self._process is not None and self.running:
            self._process.send_signal(self.gentle)

    def wait_stopped(self) -> None:
        """Return when it is gone; one that takes too long is killed, and recovers next time."""
        if self._process is None:
            return
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _evict(self) -> int:
        """Take the lock; an orphan of a killed keeper that holds it is told to go, ever louder."""
        began = time.monotonic()
        signals = [(0.0, self.gentle), (15.0, signal.SIGQUIT), (30.0, signal.SIGKILL)]
        while (lock := locks.attempt(self.home.lock(self.name))) is None:
            waited = time.monotonic() - began
            if signals and waited >= signals[0][0]:
                self._signal_orphan(signals.pop(0)[1])
            if waited > STOP_SECONDS:
                raise EmbeddedError(f"{self.name} of an earlier run does not stop.")
            time.sleep(0.02)
        return lock

    def _signal_orphan(self, which: signal.Signals) -> None:
        """Signal the holder of the lock; in a stale file the number may be a stranger's by now."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            pid = int(self.pid_file.read_text().split()[0])
            if locks.has_open(pid, self.home.lock(self.name)):
                os.kill(pid, which)

    def _log(self) -> Path:
        log = self.home.log(self.name)
        if log.exists() and log.stat().st_size > LARGEST_LOG:
            log.replace(log.with_suffix(".log.old"))
        return log


class PostgresServer(EmbeddedServer):
    """PostgreSQL; its cluster is made on the first start."""

    name = "postgres"
    gentle = signal.SIGINT  # "fast shutdown"; SIGTERM would wait for every session to end

    @property
    def cluster(self) -> Path:
        """The data directory."""
        return self.home.postgres / "data"

    @property
    def pid_file(self) -> Path:
        """The first line is the pid, the eighth the state."""
        return self.cluster / "postmaster.pid"

    def answers(self) -> bool:
        """Read what the postmaster notes in its pid file when it takes connections."""
        try:
            lines = self.pid_file.read_text().splitlines()
            return self._process is not None and (
                int(lines[0]) == self._process.pid and lines[7].strip() == "ready"
            )
        except (OSError, ValueError, IndexError):
            return False

    def prepare(self) -> list[str]:
        """Make the cluster when there is none, and drop what a crash left of the last postmaster."""
        version = self.cluster / "PG_VERSION"
        major = int(version.read_text()) if version.exists() else None
        found = binaries.postgres(major)
        programs = binaries.within_reach(found.programs / "postgres", self.home).parent
        if major is None:
            self._make_cluster(programs, found.major)
        # Safe: every process of a postmaster holds the lock that is ours now. The socket has a
        # pid file too, and PostgreSQL refuses to start when a stranger has that number.
        self.pid_file.unlink(missing_ok=True)
        (self.home.sockets / ".s.PGSQL.5432.lock").unlink(missing_ok=True)
        settings = {**POSTGRES_SETTINGS, "unix_socket_directories": str(self.home.sockets)}
        options = [f"-c{name}={value}" for name, value in settings.items()]
        return [str(programs / "postgres"), "-D", str(self.cluster), *options]

    def _make_cluster(self, programs: Path, major: int) -> None:
        making = self.home.postgres / "making"
        shutil.rmtree(making, ignore_errors=True)
        locale = ["--locale-provider=builtin"] if major >= 17 else []  # noqa: PLR2004 - since then
        done = subprocess.run(  # noqa: S603 - our own command
            [
                programs / "initdb",
                "-D",
                making,
                "-U",
                "postgres",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C.UTF-8",
                *locale,
            ],
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            cwd=self.home.folder,
            env=environment(),
            timeout=START_SECONDS,
            **self.home.identity(),
        )
        if done.returncode:
            raise EmbeddedError(
                f"initdb ended with {done.returncode}: {done.stderr[-1000:].strip()}"
            )
        making.rename(self.cluster)  # so that nobody ever takes half a cluster for a whole one


class ValkeyServer(EmbeddedServer):
    """Valkey, or Redis; what it holds may be lost, so unreadable data are kept beside it."""

    name = "valkey"
    gentle = signal.SIGTERM

    @property
    def pid_file(self) -> Path:
        """Holds the pid alone."""
        return self.home.valkey / "valkey.pid"

    @property
    def data(self) -> Path:
        """The folder of the append-only file."""
        return self.home.valkey / "appendonlydir"

    def prepare(self) -> list[str]:
        """Needs nothing but its folder."""
        program = binaries.within_reach(binaries.valkey(), self.home)
        settings = {
            "port": "0",
            "unixsocket": str(self.home.valkey_socket),
            "unixsocketperm": "700",
            "dir": str(self.home.valkey),
            "pidfile": str(self.pid_file),
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": "",
            "maxmemory-policy": "noeviction",
        }
        return [
            str(program),
            *(part for one in settings.items() for part in (f"--{one[0]}", one[1])),
        ]

    def answers(self) -> bool:
        """Ask for the PONG that it gives once its data are loaded."""
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(2)
                connection.connect(str(self.home.valkey_socket))
                connection.sendall(b"PING\r\n")
                return connection.recv(5) == b"+PONG"
        except OSError:
            return False

    def wait(self) -> None:
        """Return as soon as it answers, with its data or, if those are broken, without."""
        try:
            super().wait()
        except EmbeddedError:
            if self.running or not self.data.exists():
                raise
            unreadable = self.data.with_name("unreadable")
            shutil.rmtree(unreadable, ignore_errors=True)
            self.data.rename(unreadable)
            self.start()
            super().wait()


def environment() -> dict[str, str]:
    """Give servers an environment without secrets, and without PG* to change their ways."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC", **kept}


def _die_with_parent(which: signal.Signals) -> Callable[[], None]:
    """Have the kernel send a signal when the keeper dies; where it cannot, the next user evicts."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)

    def ask_kernel() -> None:
        if prctl is not None:
            prctl(1, int(which))  # PR_SET_PDEATHSIG of prctl(2)

    return ask_kernel
