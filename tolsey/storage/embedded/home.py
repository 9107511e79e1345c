"""Where the embedded servers live: their folders, sockets and locks, and the user they run as."""

import hashlib
import os
import pwd
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tolsey.storage.errors import StorageError

FAR_HOME = Path("/var/lib/tolsey")
"""Where a server's data goes when root runs the service from a folder the server cannot enter."""

SHORT_ROOT = Path("/tmp")  # noqa: S108 - checked for its owner before use; the same for every process
LONGEST_SOCKET_FOLDER = 80
"""Bytes; unix(7) ends a socket's path at 108, macOS at 104, and the longest name takes 15."""

SIGN_OF_LIFE = b"."
"""What a keeper answers who asks at its door."""


class EmbeddedError(StorageError):
    """An embedded server cannot be had; the sentence says why."""


@dataclass(frozen=True, slots=True)
class ServerHome:
    """The folders of one pair of servers. `user` is whom root runs them as, else None."""

    folder: Path
    sockets: Path
    user: pwd.struct_passwd | None

    @classmethod
    def of(cls, folder: Path) -> "ServerHome":
        """Find the home that belongs to a folder; every process that asks gets the same."""
        folder = folder.resolve()
        user = _server_user(folder)
        folder = _settled(folder, user)
        sockets = folder / "run"
        if len(os.fsencode(sockets)) > LONGEST_SOCKET_FOLDER or re.search(
            r"[^\w./-]", str(sockets)
        ):
            sockets = SHORT_ROOT / f"tolsey-{os.geteuid()}-{_digest(folder)}"
        return cls(folder, sockets, user)

    def build(self) -> None:
        """Make the folders. Root keeps the outer one, so that a server cannot plant links in it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.folder.parent == FAR_HOME:
            FAR_HOME.chmod(0o755)  # whatever the umask
        self.folder.chmod(0o755 if self.user else 0o700)
        for inner in (self.postgres, self.valkey, self.sockets):
            inner.mkdir(exist_ok=True, mode=0o700)
            found = inner.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (os.geteuid(), self.uid):
                raise EmbeddedError(f"{inner} belongs to somebody else.")
            if self.user:
                os.chown(inner, self.user.pw_uid, self.user.pw_gid, follow_symlinks=False)
            inner.chmod(0o700)

    @property
    def uid(self) -> int:
        """The user the servers run as."""
        return self.user.pw_uid if self.user else os.geteuid()

    @property
    def postgres(self) -> Path:
        """The folder that PostgreSQL's cluster is made in."""
        return self.folder / "postgres"

    @property
    def valkey(self) -> Path:
        """The folder of Valkey's append-only file."""
        return self.folder / "valkey"

    @property
    def valkey_socket(self) -> Path:
        """The socket that Valkey answers on."""
        return self.sockets / "valkey.sock"

    @property
    def database_url(self) -> str:
        """What asyncpg connects to. The port is in the socket's name, and PGPORT must not win."""
        return f"postgresql://postgres@/postgres?host={self.sockets}&port=5432"

    @property
    def redis_url(self) -> str:
        """What redis-py connects to."""
        return f"unix://{self.valkey_socket}?db=0"

    @property
    def door(self) -> Path:
        """The socket at which the keeper gives a sign of life."""
        return self.sockets / "keeper.sock"

    @property
    def ready(self) -> Path:
        """The file that is there while both servers answer; the keeper's pid and linger."""
        return self.folder / "ready"

    def lock(self, name: str) -> Path:
        """Name a lock file: `users` and `start` of callers, `keeper`, and one of each server."""
        return self.folder / f"{name}.lock"

    def log(self, name: str) -> Path:
        """Name the log file of the keeper or of a server."""
        return self.folder / f"{name}.log"

    def identity(self) -> dict[str, Any]:
        """Answer what tells `subprocess` to run a program as the servers' user."""
        if self.user is None:
            return {}
        return {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []}


def reachable(path: Path, user: pwd.struct_passwd) -> bool:
    """Whether a user may walk down to a path, as far as it exists."""
    return all(_may_enter(parent, user) for parent in path.parents if parent.exists())


def tail(log: Path, characters: int = 1500) -> str:
    """Read the end of a log; nothing when it cannot be read."""
    try:
        return log.read_text(errors="replace")[-characters:].strip()
    except OSError:
        return ""


def _may_enter(folder: Path, user: pwd.struct_passwd) -> bool:
    found = folder.stat()
    if found.st_uid == user.pw_uid:
        return bool(found.st_mode & stat.S_IXUSR)
    if found.st_gid == user.pw_gid:
        return bool(found.st_mode & stat.S_IXGRP)
    return bool(found.st_mode & stat.S_IXOTH)


def _server_user(folder: Path) -> pwd.struct_passwd | None:
    """Root may not run PostgreSQL: whoever owns the data does, else an ordinary system user."""
    if os.geteuid() != 0:
        return None
    for data in (folder / "postgres", _far(folder) / "postgres"):
        if data.exists() and data.stat().st_uid != 0:
            return pwd.getpwuid(data.stat().st_uid)
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise EmbeddedError("Root cannot run PostgreSQL, and there is no user postgres or nobody.")


def _settled(folder: Path, user: pwd.struct_passwd | None) -> Path:
    """Answer the folder, or for root the far one when the servers' user cannot get there."""
    moved = folder / "moved"
    if user is None:
        if moved.is_symlink():
            raise EmbeddedError(f"Root keeps the data of {folder} in {moved.readlink()}.")
        return folder
    far = _far(folder)
    if (far / "postgres").exists():
        return far
    folder.mkdir(parents=True, exist_ok=True)  # under a strict umask, out of reach from now on
    if reachable(folder, user):
        return folder
    if (folder / "postgres").exists():  # an empty cluster elsewhere would look like lost data
        raise EmbeddedError(f"The user {user.pw_name} cannot enter {folder.parent} any more.")
    if not moved.is_symlink():
        moved.unlink(missing_ok=True)
        moved.symlink_to(far)
    return far


def _far(folder: Path) -> Path:
    return FAR_HOME / f"{re.sub(r'[^a-zA-Z0-9]+', '-', folder.name).strip('-')}-{_digest(folder)}"


def _digest(folder: Path) -> str:
    return hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
