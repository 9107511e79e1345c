"""Deliveries of webhooks over real HTTP: retried, repeated and reordered."""

import random
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, Generic, TypeVar

import anyio
import httpx

from tolsey.http.clients.certificates import trusted_certificates

RETRIES: Final = 8
TIMEOUT_SECONDS = 5.0


@dataclass(slots=True, kw_only=True)
class Delivery:
    """One message to one address; retries and repeats are the same delivery."""

    url: str
    body: bytes = field(repr=False)
    statuses: list[int] = field(default_factory=list)

    @property
    def accepted(self) -> bool:
        """Tell whether the last attempt was answered with 2xx."""
        return bool(self.statuses) and 200 <= self.statuses[-1] < 300  # noqa: PLR2004 - the class of answers


D = TypeVar("D", bound=Delivery)


@dataclass(slots=True)
class Outgoing(ABC, Generic[D]):
    """The queue of deliveries and how unruly it is.

    `repeats` and `reorders` are chances, drawn from a generator with a fixed seed. One worker
    keeps the order that `reorders` leaves.
    """

    connect_timeout_seconds: ClassVar[float] = TIMEOUT_SECONDS

    repeats: float = 0.0
    reorders: float = 0.0
    seed: int = 1
    workers: int = 1
    log: list[D] = field(default_factory=list, repr=False)
    _queue: deque[D] = field(default_factory=deque, repr=False)
    _unsettled: int = 0
    _paused: bool = False
    _changed: anyio.Event = field(default_factory=anyio.Event, repr=False)
    _random: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311 - repeatable trouble, no secret

    @property
    @abstractmethod
    def first_wait_seconds(self) -> float:
        """How long the first retry waits; each further one waits twice as long."""

    @abstractmethod
    def headers(self, delivery: D) -> Mapping[str, str]:
        """Give the headers of the next attempt, its signature among them."""

    def given_up(self, delivery: D) -> None:
        """Hear that the last retry of a delivery failed."""

    def send(self, delivery: D) -> None:
        """Queue a delivery."""
        self.log.append(delivery)
        self._enqueue(delivery)

    def repeat(self, delivery: D) -> None:
        """Send a delivery again under the same ids."""
        self._enqueue(delivery)

    def pause(self) -> None:
        """Hold deliveries back, as an outage does; what is queued meanwhile can be reordered."""
        self._paused = True

    def resume(self) -> None:
        """Send what was held back."""
        self._paused = False
        self._notify()

    async def settled(self) -> None:
        """Wait until every delivery was accepted or given up."""
        while self._unsettled:
            await self._changed.wait()

    async def run(self) -> None:
        """Send what is queued until cancelled."""
        timeout = httpx.Timeout(TIMEOUT_SECONDS, connect=self.connect_timeout_seconds)
        async with (
            httpx.AsyncClient(
                verify=trusted_certificates(), timeout=timeout, trust_env=False
            ) as client,
            anyio.create_task_group() as tasks,
        ):
            for _ in range(self.workers):
                tasks.start_soon(self._work, client, tasks)

    async def _work(self, client: httpx.AsyncClient, tasks: anyio.abc.TaskGroup) -> None:
        while True:
            while self._paused or not self._queue:
                await self._changed.wait()
            delivery = self._next()
            await self._attempt(client, delivery)
            if not delivery.accepted and len(delivery.statuses) <= RETRIES:
                self._unsettled += 1
                tasks.start_soon(self._retry, delivery)
            elif not delivery.accepted:
                self.given_up(delivery)
            elif self._random.random() < self.repeats:
                self._enqueue(delivery)
            self._unsettled -= 1
            self._notify()

    def _next(self) -> D:
        """Take the oldest delivery, or by chance a later one."""
        if len(self._queue) > 1 and self._random.random() < self.reorders:
            self._queue.rotate(-self._random.randrange(1, len(self._queue)))
        return self._queue.popleft()

    async def _attempt(self, client: httpx.AsyncClient, delivery: D) -> None:
        headers = self.headers(delivery)
        try:
            with anyio.fail_after(TIMEOUT_SECONDS):
                answer = await client.post(delivery.url, content=delivery.body, headers=headers)
            status = answer.status_code
        except (httpx.HTTPError, TimeoutError):
            status = 0
        delivery.statuses.append(status)

    async def _retry(self, delivery: D) -> None:
        await anyio.sleep(self.first_wait_seconds * 2 ** (len(delivery.statuses) - 1))
        self._enqueue(delivery)
        self._unsettled -= 1

    def _enqueue(self, delivery: D) -> None:
        self._queue.append(delivery)
        self._unsettled += 1
        self._notify()

    def _notify(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
