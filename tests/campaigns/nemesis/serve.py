"""`tolsey` with a bug planted: `python -m tests.campaigns.nemesis.serve BUG serve --port 8000`.

It is the command as an operator starts it, down to the processes that a fleet starts of it; without a bug (`-`)
nothing differs but that it ends with the campaign.
"""

import contextlib
import ctypes
import signal
import sys

from tests.campaigns.nemesis.planted import planted
from tolsey.__main__ import main

if __name__ == "__main__":
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: reaches a stopped one too
    name = sys.argv.pop(1)
    with planted(name.strip("-")):
        main()
