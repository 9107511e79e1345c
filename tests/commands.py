"""What is typed at a prompt, each as a process of its own that has its imports from one they all come from.

To start Python and import the service takes most of a second of processor time; a command takes a twentieth.
"""

import os
import sys
from contextlib import ExitStack
from functools import cache
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext
from pathlib import Path
from subprocess import CompletedProcess

from tolsey.__main__ import COMMANDS

LONGEST_SECONDS = 240.0
"""How long a command may take, however busy the machine is."""
STREAMS = {"stdin": "r", "stdout": "w", "stderr": "w"}


@cache
def _ready() -> ForkServerContext:
    context = get_context("forkserver")
    context.set_forkserver_preload(
        [
            __name__,
            "tolsey.__main__",
            *(f"tolsey.commands.{module}" for module in {one for one, _ in COMMANDS.values()}),
            "tolsey.commands.doctor.examination",
            "tolsey.service",
        ]
    )
    return context


def _run(arguments: tuple[str, ...], folder: Path, settings: dict[str, str]) -> None:
    """Be the process: standard streams are the files of the folder, and nothing is set but the settings."""
    from tolsey.__main__ import main  # noqa: PLC0415 - for the child alone

    os.environ.clear()
    os.environ.update(settings)
    os.chdir(folder)
    sys.argv = ["tolsey", *arguments]
    with ExitStack() as stack:
        for number, (name, mode) in enumerate(STREAMS.items()):
            opened = stack.enter_context((folder / name).open(mode))
            os.dup2(opened.fileno(), number)  # for what it starts in turn
            setattr(sys, name, opened)
        main()


def tolsey(
    *arguments: str, folder: Path, settings: dict[str, str], typed: str = ""
) -> CompletedProcess[str]:
    """Run a command of the service."""
    (folder / "stdin").write_text(typed)
    with ExitStack() as stack:
        process = _ready().Process(target=_run, args=(arguments, folder, settings))
        process.start()
        stack.callback(process.close)
        process.join(LONGEST_SECONDS)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise TimeoutError(f"tolsey {' '.join(arguments)}")
        status = process.exitcode
    said = [(folder / name).read_text() for name in ("stdout", "stderr")]
    return CompletedProcess(arguments, status, *said)
