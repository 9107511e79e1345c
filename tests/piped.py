"""A parent and its children as processes of a test's own, all of which hold one pipe: what is left of them is found by it."""

import contextlib
import json
import os
import select
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SECONDS = 240.0
"""Longer than anything here takes, on any machine."""


@dataclass
class PipedProcesses(ABC):
    """They log to `folder`/log; `process`, the parent, has their pipe as its output."""

    folder: Path
    process: "subprocess.Popen[bytes]" = field(init=False)

    @abstractmethod
    def children(self) -> Sequence[int]:
        """List the children of all time."""

    def said(self, event: str) -> list[dict[str, Any]]:
        """List the log lines of an event."""
        # What is still being written has no end of a line yet.
        *lines, _ = (self.folder / "log").read_text().split("\n")
        return [line for line in map(json.loads, lines) if line["event"] == event]

    def gone(self, seconds: float = SECONDS) -> bool:
        """Wait until every process has closed our pipe; False when one stays."""
        assert self.process.stdout is not None
        return bool(select.select([self.process.stdout], [], [], seconds)[0])

    def end(self) -> None:
        """Leave nobody behind."""
        with self.process:
            self.process.kill()
            if not self.gone(0):
                for pid in self.children():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
