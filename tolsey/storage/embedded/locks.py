"""File locks that the kernel frees with their last holder, so that nothing about them goes stale."""

import fcntl
import os
from pathlib import Path


def wait_for(path: Path, *, shared: bool = False) -> int:
    """Wait for the lock on a file; answer the descriptor that holds it until it is closed."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def attempt(path: Path, *, shared: bool = False) -> int | None:
    """Answer the descriptor that holds the lock on a file, or None when others are in the way."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def owned(path: Path) -> bool:
    """Whether somebody holds the lock on a file alone."""
    descriptor = attempt(path, shared=True)  # probes may meet, and must not mistake each other
    if descriptor is None:
        return True
    os.close(descriptor)
    return False


def shared(path: Path) -> bool:
    """Whether anybody holds the lock on a file together with others."""
    descriptor = attempt(path, shared=True)
    if descriptor is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def has_open(pid: int, path: Path) -> bool:
    """Whether a process has a file open; without /proc to tell, yes."""
    if not Path("/proc/self/fd").exists():
        return True
    try:
        wanted = path.stat()
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            found = descriptor.stat()
            if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
                return True
    except OSError:
        return False
    return False


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
