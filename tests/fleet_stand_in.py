"""A fleet whose processes do next to nothing, so that they start in a blink.

`python fleet_stand_in.py parent FOLDER [GRACE_SECONDS]` runs two of them. Each answers a line on a
connection with its process id; to `slow` at once, and again once it was told to end. Files in the folder
change what the next ones do: `fail` (end at once), `deaf` (do not end on SIGTERM).
"""

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path

from tolsey import logs
from tolsey.commands.fleet import Fleet, Parent
from tolsey.listeners import Listeners

COUNT = 2


def parent(folder: Path, grace_seconds: float) -> int:
    logs.configure()
    listeners = Listeners("127.0.0.1", 0, COUNT)
    (folder / "address").write_text(listeners.address)
    command = (sys.executable, __file__, "child", str(folder))
    return Fleet(command, listeners, COUNT, grace_seconds=grace_seconds).run()


def child(folder: Path, listener: socket.socket, line: int) -> int:
    with (folder / "started").open("a") as started:
        started.write(f"{os.getpid()}\n")
    answered = threading.Event()
    deaf = (folder / "deaf").exists()
    signal.signal(signal.SIGTERM, (lambda *_: None) if deaf else lambda *_: answered.set())
    above = Parent(listener.fileno(), line)
    if (folder / "fail").exists():
        return 3
    serving: list[threading.Thread] = []
    listener.settimeout(0.02)
    above.ready()
    while not answered.is_set():
        with contextlib.suppress(TimeoutError):
            made, _ = listener.accept()
            serving.append(threading.Thread(target=answer, args=(made, answered)))
            serving[-1].start()
    listener.close()
    for thread in serving:
        thread.join(5)
    return 0


def answer(made: socket.socket, answered: threading.Event) -> None:
    with made, contextlib.suppress(OSError):
        made.settimeout(10)
        if made.recv(100) == b"slow\n":
            made.sendall(f"{os.getpid()}\n".encode())
            answered.wait(10)
            time.sleep(0.1)
        made.sendall(f"{os.getpid()}\n".encode())


def main(role: str, folder: str, *more: str) -> int:
    if role == "parent":
        return parent(Path(folder), float(more[0]) if more else 20.0)
    given = dict(zip(more[::2], more[1::2], strict=True))
    listener = socket.socket(fileno=int(given["--listener"]))
    return child(Path(folder), listener, int(given["--parent"]))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
