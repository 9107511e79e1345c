"""Timers: aiocron fires, and all a firing does is post a message."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC
from functools import partial

import aiocron
import structlog

from tolsey.runtime.clock import Time

log = structlog.get_logger()

Fire = Callable[[str], Awaitable[None]]

LOOK_SECONDS = 10.0
"""How often the wall clock is compared with the steady one."""

STEP_SECONDS = 1.0
"""A wall clock that moved this far from the monotonic one was stepped."""


class Timers:
    """Fires names by their cron expressions, in UTC."""

    def __init__(self, expressions: Mapping[str, str], fire: Fire, time: Time) -> None:
        self._expressions = dict(expressions)
        self._fire = fire
        self._time = time
        self._tasks: dict[asyncio.Task[None], None] = {}

    async def run(self) -> None:
        """Fire until cancelled.

        aiocron computes every firing from one pair of clock readings taken at its start, so the
        timers are started anew when the wall clock has been stepped.
        """
        loop = asyncio.get_running_loop()
        crons = [
            aiocron.crontab(
                expression, func=partial(self._fired, name), start=False, loop=loop, tz=UTC
            )
            for name, expression in self._expressions.items()
        ]
        for cron in crons:
            cron.start()
        try:
            skew = self._skew()
            async for _ in self._time.every(LOOK_SECONDS):
                now = self._skew()
                if abs(now - skew) > STEP_SECONDS:
                    log.warning("timers.restarted", stepped_seconds=round(now - skew, 3))
                    skew = now
                    for cron in crons:
                        cron.stop()
                        cron.start()
        finally:
            for cron in crons:
                cron.stop()

    def _skew(self) -> float:
        return self._time.now().timestamp() - self._time.monotonic()

    def _fired(self, name: str) -> None:
        # aiocron runs this in a loop callback: it must neither block nor raise.
        task = asyncio.get_running_loop().create_task(self._post(name))
        self._tasks[task] = None
        task.add_done_callback(lambda task: self._tasks.pop(task, None))

    async def _post(self, name: str) -> None:
        try:
            await self._fire(name)
        except Exception as error:
            log.exception("timer.failed", name=name, error=repr(error))
