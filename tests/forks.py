"""Runs the tests in forks of the process that collected them: `pytest --forks 3`.

To import and collect all of them takes ten seconds of processor time; here it is spent once, and what was
imported is shared. Each fork starts with a share of its own, so that neighbours share their fixtures, and who
is done takes over half of what the slowest has left.
"""

import os
import pickle
import selectors
import signal
import socket
import struct
import sys
import traceback
from typing import Any, Final, NoReturn

import pytest

LENGTH: Final = struct.Struct("!I")
NEXT: Final = "next"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--forks", type=int, default=0, help="Run the tests in so many processes.")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run all that was collected; answers None where one process is to do it."""
    config = session.config
    if not config.option.forks or config.option.collectonly or session.testsfailed:
        return None
    reporter = config.pluginmanager.getplugin("terminalreporter")
    reporter.showfspath = False  # files take turns
    config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # before they ask at the same time
    forks = Forks(session)
    forks.start(config.option.forks)
    forks.attend()
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
    return True


class Line:
    """Carries values between two processes, whole ones."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end

    def send(self, value: Any) -> None:
        written = pickle.dumps(value)
        self.end.sendall(LENGTH.pack(len(written)) + written)

    def receive(self) -> Any:
        """Wait for a value; raises EOFError when nobody is at the other end any more."""
        (length,) = LENGTH.unpack(self._read(LENGTH.size))
        return pickle.loads(self._read(length))  # noqa: S301 - our own fork's

    def _read(self, length: int) -> bytes:
        read = bytearray()
        while len(read) < length:
            part = self.end.recv(length - len(read))
            if not part:
                raise EOFError
            read += part
        return bytes(read)


class Fork:
    """One of the processes, as the one that collected sees it."""

    def __init__(self, line: Line, pid: int, left: range) -> None:
        self.line = line
        self.pid = pid
        self.left = left
        self.given: list[int] = []
        """What it runs, and what it is to run next."""

    def take(self) -> int | None:
        """Take the first test of what is left of its share."""
        if not self.left:
            return None
        self.given.append(self.left[0])
        self.left = self.left[1:]
        return self.given[-1]


class Forks:
    """Hands out the tests, and tells pytest what became of each."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._selector = selectors.DefaultSelector()
        self._forks: list[Fork] = []

    def start(self, count: int) -> None:
        """Start the processes, each with its share."""
        total = len(self._session.items)
        for number in range(count):
            ours, theirs = socket.socketpair()
            sys.stdout.flush()
            sys.stderr.flush()
            pid = os.fork()
            if pid == 0:
                for end in (ours, *(one.line.end for one in self._forks)):
                    end.close()
                _run_and_leave(self._session, number, Line(theirs))
            theirs.close()
            share = range(total * number // count, total * (number + 1) // count)
            one = Fork(Line(ours), pid, share)
            self._selector.register(ours, selectors.EVENT_READ, one)
            self._forks.append(one)

    def attend(self) -> None:
        """Go on until every process has ended; they end with this one."""
        try:
            while self._selector.get_map():
                for key, _ in self._selector.select():
                    self._hear(key.data)
        finally:
            for key in list(self._selector.get_map().values()):
                os.kill(key.data.pid, signal.SIGTERM)

    def _hear(self, one: Fork) -> None:
        session = self._session
        try:
            said = one.line.receive()
        except (EOFError, ConnectionError):
            self._bury(one)
            return
        if said == NEXT:
            if session.shouldfail or session.shouldstop:
                one.line.send(None)
                return
            if not one.left:
                self._take_over(one)
            one.line.send(one.take())
            return
        report = session.config.hook.pytest_report_from_serializable(
            config=session.config, data=said
        )
        if report.when == "teardown":
            one.given.pop(0)
        session.config.hook.pytest_runtest_logreport(report=report)

    def _take_over(self, one: Fork) -> None:
        """Give it the later half of the longest share that is left."""
        other = max(self._forks, key=lambda fork: len(fork.left))
        middle = self._border(other.left)
        other.left, one.left = range(other.left.start, middle), range(middle, other.left.stop)

    def _border(self, left: range) -> int:
        """Find the middle of what is left, or the nearest place to it where a file begins.

        Tests of one file share what it sets up once, which may be a large database.
        """
        middle, items = (left.start + left.stop) // 2, self._session.items
        begins = [at for at in left[1:] if items[at].path != items[at - 1].path]
        return min(begins, key=lambda at: abs(at - middle), default=middle)

    def _bury(self, one: Fork) -> None:
        self._selector.unregister(one.line.end)
        one.line.end.close()
        _, status = os.waitpid(one.pid, 0)
        if status and not self._session.shouldfail:
            what = [self._session.items[at].nodeid for at in one.given[:1]]
            code = os.waitstatus_to_exitcode(status)
            self._session.shouldfail = f"a process ended with {code} in {what}"


class Teller:
    """Tells the process that collected what became of each test, in place of a terminal."""

    def __init__(self, config: pytest.Config, line: Line) -> None:
        self._config = config
        self._line = line

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        said = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._line.send(said)


def _run_and_leave(session: pytest.Session, number: int, line: Line) -> NoReturn:
    """Run what is handed out, in a fork, and end it there."""
    status = 1
    try:
        _settle(session.config, number)
        session.config.pluginmanager.register(Teller(session.config, line))
        _run(session, line)
        status = 0
    except (KeyboardInterrupt, EOFError, ConnectionError):  # the whole run ends
        session._setupstate.teardown_exact(None)
    except BaseException:  # noqa: BLE001 - nobody else is there to be told
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _settle(config: pytest.Config, number: int) -> None:
    """Take leave of what belongs to the process that collected: its terminal, its captured output, its folder."""
    plugins = config.pluginmanager
    plugins.unregister(plugins.getplugin("terminalreporter"))
    capture = plugins.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
    folders = config._tmp_path_factory  # type: ignore[attr-defined]
    folders._basetemp = folders.getbasetemp() / f"fork-{number}"
    folders._basetemp.mkdir(mode=0o700)


def _run(session: pytest.Session, line: Line) -> None:
    """Run one test after the other; the next is known before, so that what both use stays."""

    def following() -> pytest.Item | None:
        line.send(NEXT)
        at = line.receive()
        return None if at is None else session.items[at]

    item = following()
    while item is not None:
        after = following()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        item = after
