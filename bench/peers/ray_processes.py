"""Asks Ray's counter in another process, which is a number that is raised and told in memory.

Every asker's ask is sent before the first answer is awaited, then all answers are awaited together
and all ask again: of what was tried (a task for each asker, an async actor) this is the fastest. An
ask took as long as its round.
"""

import logging
import os
import shutil
import tempfile
from collections.abc import Callable
from time import perf_counter
from typing import Any

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # before it is imported: nothing is sent anywhere

import ray

from bench import asking

MEMORY_BYTES = 80_000_000
"""What Ray asks for at least."""


class RayCounter:
    """A number."""

    def __init__(self) -> None:
        asking.collect_seldom()
        self.total = 0

    def read(self) -> int:
        """Raise the number and tell it."""
        self.total += 1
        return self.total


def rounds(ask: Callable[[], Any], askers: int, seconds: float) -> asking.Result:
    took: list[float] = []
    started = perf_counter()
    while (sent := perf_counter()) < started + seconds:
        ray.get([ask() for _ in range(askers)])
        took += [perf_counter() - sent] * askers
    return asking.seen(took, perf_counter() - started)


async def main() -> None:
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    try:
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            object_store_memory=MEMORY_BYTES,
            _temp_dir=folder,
        )
        made: Any = ray.remote(RayCounter)
        found = made.remote()
        ray.get(found.read.remote())

        async def do(_: str, given: dict[str, Any]) -> asking.Result:
            return rounds(found.read.remote, given["askers"], given["seconds"])

        await asking.obey(do)
        ray.shutdown()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    asking.serve(main)
