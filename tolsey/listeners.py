"""The listening sockets behind one port, and which of them get the new connections.

On Linux each process accepts on a socket of its own, so that a burst does not end up at whichever
process woke first, and a packet filter picks the socket: it passes over those that nobody serves.
Elsewhere the processes share one socket, and whoever is awake accepts.
"""

import contextlib
import ctypes
import socket
import struct
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Self, TypeAlias

BACKLOG = 2048
# Of asm-generic/socket.h, which the module `socket` does not name, and of linux/filter.h.
SO_ATTACH_FILTER = 26
SO_ATTACH_REUSEPORT_CBPF = 51
LOAD_WORD, LOAD_BYTE, MODULO, EQUAL, ANY_BIT, ANSWER = 0x20, 0x30, 0x94, 0x15, 0x45, 0x06
RANDOM = 0xFFFFF000 + 56
FLAGS, SYN = 13, 0x02
ALL = 0xFFFFFFFF

Step: TypeAlias = tuple[int, int, int, int]
"""What to do, how many steps to skip when it is so and when not, and with which number."""

TAKE_NOTHING: Sequence[Step] = (
    (LOAD_BYTE, 0, 0, FLAGS),
    (ANY_BIT, 0, 1, SYN),
    (ANSWER, 0, 0, 0),
    (ANSWER, 0, 0, ALL),
)


def address_of(listener: socket.socket) -> str:
    """Write where clients connect to."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Listeners:
    """As many listeners at one address as there are processes to serve it.

    The address is ours alone: raises OSError when another program listens there.
    """

    def __init__(self, host: str, port: int, count: int) -> None:
        self._sockets = [_listening(host, port)]
        self.steered = False
        try:
            if count > 1 and sys.platform == "linux":
                self._add(count - 1)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def address(self) -> str:
        """Where clients connect to."""
        return address_of(self._sockets[0])

    def of(self, index: int) -> socket.socket:
        """Answer the listener of a process: its own, or the one that all share."""
        return self._sockets[index if self.steered else 0]

    def steer(self, indexes: Sequence[int]) -> None:
        """Send new connections to these processes only; those that wait elsewhere stay there."""
        if self.steered and indexes:
            _draw(self._sockets[0], indexes)

    def refuse_new_connections(self) -> None:
        """Let nobody connect any more, so that closing does not reset whoever just did.

        Clients try again a second later, when the address is closed or somebody else's. Where the
        kernel has no such filter they connect as before.
        """
        for listener in self._sockets if sys.platform == "linux" else ():
            with contextlib.suppress(OSError):
                _attach(listener, SO_ATTACH_FILTER, TAKE_NOTHING)

    def close(self) -> None:
        """Listen no more; what a process inherited stays open there."""
        for listener in self._sockets:
            listener.close()

    def _add(self, count: int) -> None:
        """Add listeners to the first, or none when the kernel does not let us say who gets what."""
        first = self._sockets[0]
        # Not before it listened alone: with this set the address could be somebody else's too.
        first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        host, port = first.getsockname()[:2]
        self._sockets += [_listening(host, port, shared=True) for _ in range(count)]
        try:
            _draw(first, range(count + 1))
        except OSError:
            while count:
                self._sockets.pop().close()
                count -= 1
        else:
            self.steered = True


def _listening(host: str, port: int, *, shared: bool = False) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    with contextlib.ExitStack() as undo:
        undo.callback(made.close)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if shared:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind((host, port))
        made.listen(BACKLOG)
        undo.pop_all()
    return made


def _draw(listener: socket.socket, indexes: Sequence[int]) -> None:
    """Let one of the listeners be drawn for each connection; they are numbered as they came."""
    steps: list[Step] = [(LOAD_WORD, 0, 0, RANDOM), (MODULO, 0, 0, len(indexes))]
    for drawn, index in enumerate(indexes):
        steps += [(EQUAL, 0, 1, drawn), (ANSWER, 0, 0, index)]
    steps.append((ANSWER, 0, 0, ALL))  # never reached, but a filter must end with an answer
    _attach(listener, SO_ATTACH_REUSEPORT_CBPF, steps)


def _attach(listener: socket.socket, option: int, steps: Sequence[Step]) -> None:
    code = b"".join(struct.pack("=HBBI", *step) for step in steps)
    held = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HL", len(steps), ctypes.addressof(held))
    listener.setsockopt(socket.SOL_SOCKET, option, program)
