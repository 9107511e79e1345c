"""The parent of several serving processes: starts them, replaces them, and ends with them.

It serves nothing and imports nothing that does, so that it starts in a blink and outlives them all.
A child inherits its listener and a line to the parent: it writes one byte there when it serves, and
reads the parent's end from it.
"""

import contextlib
import math
import os
import selectors
import signal
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import structlog

from tolsey.listeners import Listeners

GRACE_SECONDS = 30.0
READY_SECONDS = 300.0  # the first start of embedded servers unpacks and builds
STEADY_SECONDS = 10.0
FIRST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 5.0
REPEAT_SECONDS = 0.5  # what runs us may pass on a signal that we had from the terminal as well
ORPHAN_SECONDS = GRACE_SECONDS + 5

log = structlog.get_logger()


@dataclass(eq=False)
class Child:
    """A process that serves, or is about to."""

    place: "Place"
    process: subprocess.Popen[bytes]
    line: socket.socket
    started_at: float
    ready: bool = False
    end_by: float | None = None
    """When it is killed, for one that was told to end."""
    killed: bool = False

    @property
    def end(self) -> str:
        """Say how it ended: its exit status, or the signal that killed it."""
        status = self.process.returncode
        names = {one.value: one.name for one in signal.Signals}
        return str(status) if status >= 0 else names.get(-status, f"signal {-status}")


@dataclass(eq=False)
class Place:
    """What one of the processes is there for: a listener that somebody always serves."""

    index: int
    child: Child | None = None
    successor: Child | None = None
    """Started to replace the child, which serves until this one is ready."""
    former: Child | None = None
    """Was replaced and finishes what it accepted."""
    start_at: float = 0.0
    quick_deaths: int = 0

    @property
    def serves(self) -> bool:
        """Whether new connections are answered here, whoever of us accepts them.

        One that ends answers those it finds in the last instant no more.
        """
        return self.child is not None and self.child.ready and self.former is None


class Fleet:
    """As many processes as there are places, until a signal ends them.

    `command` is what a child runs; `--listener` and `--parent` with a descriptor each are added.
    SIGTERM and SIGINT drain, a second one kills; SIGHUP replaces one process after the other.
    """

    def __init__(
        self,
        command: Sequence[str],
        listeners: Listeners,
        count: int,
        *,
        grace_seconds: float = GRACE_SECONDS,
        ready_seconds: float = READY_SECONDS,
    ) -> None:
        self._command = tuple(command)
        self._listeners = listeners
        self._grace_seconds = grace_seconds
        self._ready_seconds = ready_seconds
        self._places = [Place(index) for index in range(count)]
        self._children: list[Child] = []
        self._to_replace: deque[Place] = deque()
        self._replace_before = 0.0
        self._selector = selectors.DefaultSelector()
        self._has_terminal = os.isatty(0)
        self._announced = False
        self._served = False
        self._stopping = False
        self._told_at = 0.0
        self._status = 0

    def run(self) -> int:
        """Answer an exit status: 0 when every process ended by itself, after it was told to."""
        try:
            with self._signals(), self._listeners, self._selector:
                self._start_due()
                while self._children or not self._stopping:
                    for key, _ in self._selector.select(self._timeout_seconds()):
                        key.data()
                    self._collect()
                    self._kill_overdue()
                    self._start_due()
                    self._replace_next()
        finally:
            for child in self._children:  # whatever went wrong here, they drain without us
                child.line.close()
        log.info("service.stopped")
        return self._status

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Hear signals as bytes among the other events, so that none falls between two steps."""
        ours, kernels = socket.socketpair()
        with ours, kernels:
            for end in (ours, kernels):
                end.settimeout(0)
            before = signal.set_wakeup_fd(kernels.fileno(), warn_on_full_buffer=False)
            heard = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
            for one in heard:
                signal.signal(one, lambda *_: None)

            def read() -> None:
                for number in ours.recv(4096):
                    self._hear(signal.Signals(number))

            self._selector.register(ours, selectors.EVENT_READ, read)
            try:
                yield
            finally:
                signal.set_wakeup_fd(before)

    def _hear(self, heard: signal.Signals) -> None:
        hung_up = heard is signal.SIGHUP and self._has_terminal and not os.isatty(0)
        if heard in {signal.SIGTERM, signal.SIGINT} or hung_up:
            if not self._stopping:
                log.info("service.stopping", signal=heard.name)
                self._stop()
            elif time.monotonic() > self._told_at + REPEAT_SECONDS:
                for child in self._children:
                    child.process.kill()
        elif heard is signal.SIGHUP and not self._stopping:
            log.info("fleet.replacing", processes=len(self._places))
            self._to_replace = deque(self._places)
            self._replace_before = time.monotonic()

    def _stop(self) -> None:
        self._stopping = True
        self._told_at = time.monotonic()
        self._to_replace.clear()
        self._listeners.refuse_new_connections()
        self._listeners.close()
        for child in self._children:
            self._tell_to_end(child)

    def _tell_to_end(self, child: Child) -> None:
        child.end_by = child.end_by or time.monotonic() + self._grace_seconds
        child.process.terminate()

    def _timeout_seconds(self) -> float | None:
        """Say how long nothing is due, by itself."""
        due = [place.start_at for place in self._places if self._may_start(place)]
        due += [self._kill_at(child) for child in self._children]
        due = [at for at in due if at < math.inf]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _kill_at(self, child: Child) -> float:
        if child.killed:
            return math.inf
        if child.end_by is not None:
            return child.end_by
        return math.inf if child.ready else child.started_at + self._ready_seconds

    def _may_start(self, place: Place) -> bool:
        """Before anybody has served, one that failed waits: the others may fail for the same."""
        return (
            place.child is None and not self._stopping and (self._served or not place.quick_deaths)
        )

    def _start_due(self) -> None:
        now = time.monotonic()
        for place in self._places:
            if self._may_start(place) and place.start_at <= now:
                place.child = self._start(place)
                if place.child is None:
                    self._retry(place, lived_seconds=0.0)

    def _start(self, place: Place) -> Child | None:
        ours, theirs = socket.socketpair()
        with theirs:
            passed = (self._listeners.of(place.index).fileno(), theirs.fileno())
            descriptors = ("--listener", str(passed[0]), "--parent", str(passed[1]))
            try:
                process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                    [*self._command, *descriptors],
                    stdin=subprocess.DEVNULL,
                    pass_fds=passed,
                    process_group=0,  # a terminal's signals come to us, and from us to them
                )
            except OSError as error:
                ours.close()
                log.error("process.unstarted", shard=place.index, error=repr(error))  # noqa: TRY400 - the error says it all
                return None
        child = Child(place, process, ours, time.monotonic())
        self._children.append(child)

        def read() -> None:
            self._selector.unregister(ours)
            with contextlib.suppress(OSError):
                if ours.recv(1):
                    self._ready(child)

        self._selector.register(ours, selectors.EVENT_READ, read)
        return child

    def _ready(self, child: Child) -> None:
        place, child.ready, self._served = child.place, True, True
        log.info("process.ready", shard=place.index, pid=child.process.pid)
        if child is place.successor:
            place.former, place.child, place.successor = place.child, child, None
        self._steer()
        if place.former is not None:  # no new connections go there any more
            self._tell_to_end(place.former)
        if not self._announced and all(place.serves for place in self._places):
            self._announced = True
            log.info("service.ready", address=self._listeners.address, processes=len(self._places))

    def _steer(self) -> None:
        if not self._stopping:
            try:
                self._listeners.steer([place.index for place in self._places if place.serves])
            except OSError as error:  # then connections go on as before
                log.warning("listeners.unsteered", error=repr(error))

    def _collect(self) -> None:
        for child in [child for child in self._children if child.process.poll() is not None]:
            self._children.remove(child)
            with contextlib.suppress(KeyError):
                self._selector.unregister(child.line)
            child.line.close()
            if child.end_by is not None:
                self._ended(child)
            else:
                self._died(child)

    def _ended(self, child: Child) -> None:
        """Note how one ended that was told to; SIGTERM kills one that had not begun to listen."""
        if self._stopping and child.process.returncode not in {0, -signal.SIGTERM}:
            self._status = 1
        place = child.place
        log.info("process.stopped", shard=place.index, pid=child.process.pid, status=child.end)
        if child is place.former:
            place.former = None
            self._steer()

    def _died(self, child: Child) -> None:
        place = child.place
        lived = time.monotonic() - child.started_at
        log.error(
            "process.died",
            shard=place.index,
            pid=child.process.pid,
            status=child.end,
            lived_seconds=round(lived, 3),
        )
        if child is place.successor:
            place.successor = None
            self._to_replace.clear()
            log.error("fleet.kept", reason="a successor did not get ready; the others stay")
            return
        place.child, place.successor = place.successor, None
        if place.child is None:
            self._retry(place, lived)
        self._steer()

    def _retry(self, place: Place, lived_seconds: float) -> None:
        """Say when the next one starts: at once, but later and later when it dies at once, too."""
        if lived_seconds >= STEADY_SECONDS:
            place.quick_deaths = 0
        place.start_at = time.monotonic() + pause_seconds(place.quick_deaths)
        place.quick_deaths += 1
        nobody = not self._served and not any(place.child for place in self._places)
        if nobody and all(place.quick_deaths for place in self._places):
            log.error("service.failed", error="no process could start; each said why")
            self._status = 1
            self._stop()

    def _kill_overdue(self) -> None:
        now = time.monotonic()
        for child in self._children:
            if self._kill_at(child) <= now:
                child.killed = True
                child.process.kill()

    def _replace_next(self) -> None:
        """Start the next successor once nothing else is under way."""
        settled = all(place.serves for place in self._places)
        while self._to_replace and settled and len(self._children) == len(self._places):
            place = self._to_replace.popleft()
            if place.child is not None and place.child.started_at < self._replace_before:
                place.successor = self._start(place)


def pause_seconds(quick_deaths: int) -> float:
    """Say how long to wait after a death when so many before it followed their start at once."""
    doublings = min(quick_deaths - 1, 10)
    return min(FIRST_PAUSE_SECONDS * 2.0**doublings, LONGEST_PAUSE_SECONDS) if quick_deaths else 0.0


class Parent:
    """The parent, as a child of its sees it."""

    def __init__(self, listener: int, line: int) -> None:
        self.listener = listener
        self._line = socket.socket(fileno=line)
        self._line.set_inheritable(False)
        threading.Thread(target=self._watch, name="parent", daemon=True).start()

    def ready(self) -> None:
        """Say that this process serves."""
        with contextlib.suppress(OSError):  # a parent that is gone is the watch's matter
            self._line.send(b".")

    def _watch(self) -> None:
        """End with the parent: by SIGTERM, and at last whatever this process is stuck in."""
        with contextlib.suppress(OSError):
            self._line.recv(1)  # nothing is ever sent this way
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(ORPHAN_SECONDS)
        os._exit(1)
