"""A parent and its processes, as real ones, with a stand-in for the service."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.piped import SECONDS, PipedProcesses
from tests.timing import block_until
from tolsey.commands.fleet import pause_seconds
from tolsey.listeners import Listeners

STAND_IN = Path(__file__).with_name("fleet_stand_in.py")
BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
"""As a service is started: what waits in a buffer at its end is part of what is tested."""

balanced = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere all share one listener")


class FleetProcess(PipedProcesses):
    """A parent and its children."""

    def start(self, *more: str, stderr: int | None = None) -> None:
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(STAND_IN), "parent", str(self.folder), *more],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr or log,
                env=BUFFERED,
            )

    def ready(self) -> None:
        block_until(lambda: bool(self.said("service.ready")))

    def children(self) -> list[int]:
        started = self.folder / "started"
        return [int(line) for line in started.read_text().split()] if started.exists() else []

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit((self.folder / "address").read_text())
        assert parts.hostname is not None
        assert parts.port is not None
        return parts.hostname, parts.port

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=SECONDS)

    def ask(self, line: str = "who") -> int:
        """Ask over a new connection; the process that answered."""
        with self.connect() as made:
            return asked(made, line)

    def asks(self, count: int) -> Counter[int]:
        return Counter(self.ask() for _ in range(count))

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        return self.process.wait(SECONDS)


def asked(made: socket.socket, line: str = "who") -> int:
    made.sendall(f"{line}\n".encode())
    return int(made.makefile().readline())


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[FleetProcess]:
    made = FleetProcess(tmp_path)
    yield made
    made.end()


@balanced
def test_connections_spread_over_the_listeners_and_leave_out_whom_nobody_serves() -> None:
    with Listeners("127.0.0.1", 0, 3) as listeners:
        everybody = drawn(listeners, 300)
        listeners.steer([0, 2])
        two = drawn(listeners, 100)
        listeners.steer([1])
        one = drawn(listeners, 20)
        listeners.steer([])
        kept = drawn(listeners, 20)

    assert len(everybody) == 3
    assert min(everybody.values()) > 60
    assert set(two) == {0, 2}
    assert set(one) == set(kept) == {1}


def drawn(listeners: Listeners, count: int) -> Counter[int]:
    """Connect, and count which listener got how many."""
    address = listeners.of(0).getsockname()
    clients = [socket.create_connection(address) for _ in range(count)]
    got: Counter[int] = Counter()
    for index in range(3):
        listeners.of(index).settimeout(0)
        try:
            while True:
                listeners.of(index).accept()[0].close()
                got[index] += 1
        except BlockingIOError:
            continue
    for client in clients:
        client.close()
    return got


def test_where_nobody_steers_connections_all_share_one_listener(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tolsey.listeners.sys.platform", "darwin")
    with Listeners("127.0.0.1", 0, 3) as listeners:
        listeners.steer([2])
        assert {listeners.of(index).fileno() for index in range(3)} == {listeners.of(0).fileno()}
        with socket.create_connection(listeners.of(0).getsockname()):
            listeners.of(2).accept()[0].close()


@pytest.mark.parametrize("shared", [False, True])
def test_an_address_in_use_is_refused_even_when_it_is_meant_for_sharing(shared: bool) -> None:
    with Listeners("127.0.0.1", 0, 2 if shared else 1) as first:
        port = first.of(0).getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            Listeners("127.0.0.1", port, 2)


def test_each_death_soon_after_a_start_doubles_the_pause_up_to_a_bound() -> None:
    pauses = [pause_seconds(deaths) for deaths in (0, 1, 2, 3, 4, 5, 6, 1_000_000)]

    assert pauses == [0, 0.25, 0.5, 1, 2, 4, 5, 5]


def test_both_processes_answer_and_a_stop_is_clean(fleet: FleetProcess) -> None:
    fleet.start()
    fleet.ready()

    answered = fleet.asks(60)
    fleet.signal(signal.SIGTERM)

    assert set(answered) == set(fleet.children())
    assert len(answered) == 2
    assert fleet.wait() == 0
    assert fleet.gone()
    assert len(fleet.said("process.stopped")) == 2


def test_a_request_under_way_is_answered_before_the_end(fleet: FleetProcess) -> None:
    fleet.start()
    fleet.ready()

    slow = [fleet.connect() for _ in range(20)]
    taken = {asked(made, "slow") for made in slow}
    fleet.signal(signal.SIGTERM)
    answered = {int(made.makefile().readline()) for made in slow}

    assert answered == taken == set(fleet.children())
    assert fleet.wait() == 0
    for made in slow:
        made.close()


@balanced
def test_a_killed_process_is_replaced_and_no_connection_is_refused_or_reset_meanwhile(
    fleet: FleetProcess,
) -> None:
    fleet.start()
    fleet.ready()
    victim, other = fleet.children()

    os.kill(victim, signal.SIGSTOP)
    queued: list[socket.socket] = []
    while len(queued) < 40:
        queued.append(fleet.connect())
    os.kill(victim, signal.SIGKILL)
    later = fleet.asks(100)
    answered = Counter(asked(made) for made in queued)

    successor = fleet.children()[2]
    assert set(answered) == {other, successor}, "those in its queue wait for its successor"
    assert set(later) <= {other, successor}
    (died,) = fleet.said("process.died")
    assert (died["pid"], died["status"]) == (victim, "SIGKILL")
    block_until(lambda: len(fleet.said("process.ready")) == 3)
    assert set(fleet.asks(60)) == {other, successor}
    for made in queued:
        made.close()
    fleet.signal(signal.SIGTERM)
    assert fleet.wait() == 0


def test_when_no_process_can_start_it_ends_after_one_try_each(fleet: FleetProcess) -> None:
    (fleet.folder / "fail").touch()

    fleet.start()

    assert fleet.wait() == 1
    assert [line["status"] for line in fleet.said("process.died")] == ["3", "3"]
    assert len(fleet.said("service.failed")) == 1
    assert not fleet.said("service.ready")


@balanced
def test_while_one_cannot_come_back_the_others_serve(fleet: FleetProcess) -> None:
    fleet.start()
    fleet.ready()
    victim, other = fleet.children()

    (fleet.folder / "fail").touch()
    os.kill(victim, signal.SIGKILL)
    block_until(lambda: len(fleet.said("process.died")) >= 4)
    assert set(fleet.asks(30)) == {other}

    (fleet.folder / "fail").unlink()
    block_until(lambda: len(fleet.said("process.ready")) == 3)
    assert set(fleet.asks(60)) == {other, fleet.children()[-1]}


def test_a_hangup_replaces_one_after_the_other_and_fails_nobody(fleet: FleetProcess) -> None:
    fleet.start()
    fleet.ready()
    before = fleet.children()

    with ThreadPoolExecutor(1) as threads:
        fleet.signal(signal.SIGHUP)
        asking: Future[Counter[int]] = threads.submit(ask_until_replaced, fleet)
        answered = asking.result(SECONDS)

    after = fleet.children()[2:]
    assert len(after) == 2
    assert set(answered) & set(before), "the former serve until their successors do"
    assert set(fleet.asks(60)) == set(after)
    order = [
        (line["event"], line["shard"])
        for line in map(json.loads, (fleet.folder / "log").read_text().splitlines())
        if line["event"] in {"process.ready", "process.stopped"}
    ]
    assert order[2:] == [
        ("process.ready", 0),
        ("process.stopped", 0),
        ("process.ready", 1),
        ("process.stopped", 1),
    ]
    assert not fleet.said("process.died")


def ask_until_replaced(fleet: FleetProcess) -> Counter[int]:
    answered: Counter[int] = Counter()
    end = time.monotonic() + SECONDS
    while len(fleet.said("process.stopped")) < 2 and time.monotonic() < end:
        answered += fleet.asks(10)
    return answered


def test_a_successor_that_cannot_start_leaves_the_former_in_place(fleet: FleetProcess) -> None:
    fleet.start()
    fleet.ready()
    (fleet.folder / "fail").touch()

    fleet.signal(signal.SIGHUP)

    block_until(lambda: bool(fleet.said("fleet.kept")))
    assert set(fleet.asks(60)) == set(fleet.children()[:2])
    fleet.signal(signal.SIGTERM)
    assert fleet.wait() == 0


def test_when_the_parent_is_killed_its_processes_end_by_themselves(fleet: FleetProcess) -> None:
    fleet.start()
    fleet.ready()

    fleet.signal(signal.SIGKILL)

    assert fleet.wait() == -signal.SIGKILL
    assert fleet.gone()


def test_a_process_that_does_not_end_is_killed_when_its_time_is_up(fleet: FleetProcess) -> None:
    (fleet.folder / "deaf").touch()
    fleet.start("0.2")
    fleet.ready()

    fleet.signal(signal.SIGTERM)

    assert fleet.wait() == 1
    assert [line["status"] for line in fleet.said("process.stopped")] == ["SIGKILL", "SIGKILL"]
    assert fleet.gone()


def test_a_second_signal_ends_everything_now(fleet: FleetProcess) -> None:
    (fleet.folder / "deaf").touch()
    fleet.start("3600")
    fleet.ready()

    def signalled() -> bool:
        fleet.signal(signal.SIGINT)
        return fleet.process.poll() is not None

    block_until(signalled)
    assert fleet.wait() != 0
    assert fleet.gone()


def test_a_signal_that_comes_twice_at_once_counts_once(fleet: FleetProcess) -> None:
    fleet.start()
    fleet.ready()

    with fleet.connect() as made:
        asked(made, "slow")
        for _ in range(20):
            fleet.signal(signal.SIGTERM)
        assert made.makefile().readline()

    assert fleet.wait() == 0


def test_nobody_to_read_its_log_keeps_it_from_nothing(fleet: FleetProcess) -> None:
    reading, writing = os.pipe()
    fleet.start(stderr=writing)
    os.close(writing)
    block_until(lambda: len(fleet.children()) == 2)
    os.close(reading)

    os.kill(fleet.children()[0], signal.SIGKILL)

    block_until(lambda: len(fleet.children()) == 3)
    block_until(lambda: set(fleet.asks(20)) == set(fleet.children()[1:]))
    fleet.signal(signal.SIGTERM)
    assert fleet.wait() == 0
