"""Who is alive: leases by steady clocks of their holders and observers, never by the time of day.

A holder serves until `HELD` of a lease has passed since it sent its last beat, to Redis and to
PostgreSQL: there are several beats of a lease in the one, and some in the other. An observer holds a
process dead when it saw no new beat of it in either for a whole lease, by its own clock. The beat
reached the server before the observer read it, so the holder has stopped before the observer thinks
it dead, whatever any server's clock says (as the lock client of Dynamo's users does it: record
version numbers). Redis is quick, but after a failover there may be two of it: what makes a death
certain is the beat beside the map of slots. A process of the same machine is dead at once when the
kernel says so.
"""

import asyncio
import contextlib
import hashlib
import os
import secrets
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path

from tolsey.runtime.clock import REAL_TIME

HELD = 0.8
"""How much of a lease its holder makes use of; the rest is for clocks that run apart."""

BEATS = 10
"""Beats in a lease."""


def process_id() -> str:
    """Make an id for this process: where it runs, its number there, when it began, and a nonce."""
    pid = os.getpid()
    return f"{machine() or 'x'}-{pid}-{_began(pid) or 0}-{secrets.token_hex(4)}"


@lru_cache(maxsize=1)
def machine() -> str | None:
    """Name the running kernel and the space in which process numbers count; none if unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        space = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return None
    return hashlib.sha256(f"{boot} {space}".encode()).hexdigest()[:12]


def _began(pid: int) -> int | None:
    """Tell when a process began, in clock ticks since boot; none when it cannot be looked at."""
    try:
        return int(_stat(pid)[19])
    except OSError:
        return None


def _stat(pid: int) -> list[str]:
    """Read a process's state, and what follows it in proc_pid_stat(5)."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def is_gone(process: str) -> bool:
    """Whether a process has certainly ended: it ran on this machine and is no more.

    Only "no such process" (ESRCH of kill(2)) says so, or another one under its number. Whoever cannot
    look, as without a descriptor left (EMFILE, ENFILE), knows nothing.
    """
    try:
        home, pid, began, _ = process.split("-")
        number = int(pid)
    except ValueError:
        return False
    if home != machine():
        return False
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # it is there, and somebody else's
    try:
        fields = _stat(number)
    except OSError:
        return False
    return fields[0] in "ZX" or began not in {"0", fields[19]}


class Observer:
    """Judges who is alive by the beats that one process has seen."""

    def __init__(
        self,
        lease_seconds: float,
        gone: Callable[[str], bool] = is_gone,
        clock: Callable[[], float] = REAL_TIME.monotonic,
        *,
        me: str | None = None,
    ) -> None:
        self._me = me
        """Whoever looks judges everybody but itself: it knows until when it may answer."""
        self._lease = lease_seconds
        self._is_gone = gone
        self._clock = clock
        self._seen: dict[str, tuple[str | None, float]] = {}
        self._proofs: dict[str, tuple[int | None, float, float]] = {}
        """The last beat in PostgreSQL of who holds slots, since when it is known, and the last look."""
        self._beating: dict[str, None] = {}
        self._gone: dict[str, None] = {}

    def observe(self, lines: dict[str, str], holders: Iterable[str]) -> None:
        """Take in what was read: the lines of processes, and who holds slots by the map."""
        now = self._clock()
        for process in {**lines, **dict.fromkeys(holders)}:
            line = lines.get(process)
            before = self._seen.get(process)
            if before is None or before[0] != line:
                self._seen[process] = (line, now)
                if before is not None and line is not None:
                    self._beating[process] = None
                    self._gone.pop(process, None)  # whoever beats has not ended
            if process not in self._gone and process != self._me and self._is_gone(process):
                self._gone[process] = None
        for process in [known for known in self._seen if known not in lines]:
            if self.is_dead(process) and process not in holders:
                del self._seen[process]
                self._gone.pop(process, None)
                self._beating.pop(process, None)

    def observe_map(self, beats: dict[str, int | None], asked_at: float) -> None:
        """Take in the beats of who holds slots, as the map had them that was asked for then."""
        now = self._clock()
        known = self._proofs
        self._proofs = {
            process: (beat, known[process][1], asked_at)
            if process in known and known[process][0] == beat
            else (beat, now, asked_at)
            for process, beat in beats.items()
        }

    def start_over(self) -> None:
        """Trust nothing seen so far: beats may have been lost with the data of Redis."""
        now = self._clock()
        self._seen = {process: (line, now) for process, (line, _) in self._seen.items()}

    def end(self, process: str) -> None:
        """Take in that a process has ended, from one who knows."""
        self._gone[process] = None

    def is_silent(self, process: str) -> bool:
        """Whether a process is heard of no more; another server may still hear it."""
        if process == self._me:
            return False
        return process in self._gone or self.silent_seconds(process) > self._lease

    def is_dead(self, process: str) -> bool:
        """Whether a process has certainly stopped answering for its actors.

        PostgreSQL had no new beat of it for a whole lease when it was asked last.
        """
        return self._has_stopped(process, None)

    def may_be_dead(self, process: str) -> bool:
        """Whether a process is dead unless PostgreSQL, asked now, has a new beat of it."""
        return self._has_stopped(process, self._clock())

    def _has_stopped(self, process: str, asked_at: float | None) -> bool:
        if not self.is_silent(process):
            return False
        if process in self._gone or process not in self._proofs:
            return True
        _, since, last = self._proofs[process]
        return (last if asked_at is None else asked_at) - since > self._lease

    def is_fresh(self, process: str) -> bool:
        """Whether a process was seen beating, and lately: a line may be all that is left of one."""
        return (
            process in self._beating
            and process not in self._gone
            and self.silent_seconds(process) < self._lease / 2
        )

    def silent_seconds(self, process: str) -> float:
        """Tell for how long no new beat of a process was seen."""
        seen = self._seen.get(process)
        return self._clock() - seen[1] if seen else 0.0


class Witness:
    """Hears from the kernel, at once, that a process of this machine has ended (pidfd_open, Linux)."""

    def __init__(self, ended: Callable[[str], None]) -> None:
        self._ended = ended
        self._watched: dict[str, int] = {}

    def watch(self, processes: Iterable[str]) -> None:
        """Watch these processes, as far as they run on this machine, and no others."""
        wanted = dict.fromkeys(processes)
        for process in [known for known in self._watched if known not in wanted]:
            self._drop(process)
        for process in wanted:
            if process not in self._watched:
                self._add(process)

    def close(self) -> None:
        """Watch nobody."""
        self.watch(())

    def _add(self, process: str) -> None:
        home, _, rest = process.partition("-")
        pid = rest.partition("-")[0]
        if home != machine() or not pid.isdigit() or int(pid) == os.getpid():
            return
        with contextlib.suppress(OSError, AttributeError):  # no such call, or no such process
            handle = os.pidfd_open(int(pid))
            if is_gone(process):  # the number is somebody else's by now
                os.close(handle)
                return
            self._watched[process] = handle
            asyncio.get_running_loop().add_reader(handle, self._heard, process)

    def _heard(self, process: str) -> None:
        self._drop(process)
        self._ended(process)

    def _drop(self, process: str) -> None:
        handle = self._watched.pop(process)
        asyncio.get_running_loop().remove_reader(handle)
        os.close(handle)
