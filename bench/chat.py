"""What paying costs a conversation: answers a second, and the wait for the first word.

Credits are held, checkpointed and settled on the way; the same model is asked directly beside it.
The model is a process of its own that answers at once, in 32 words, so that what is measured is all
ours. The service is `tolsey serve`, one process; callers share the machine's cores with both.
"""

import argparse
import itertools
import statistics
import sys
import tempfile
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import anyio
import httpx

from bench import measure
from tolsey.sandbox.model import KEY, NAME, Model, Script
from tolsey.storage.database import Database
from tolsey.storage.people import administrators

WORDS = tuple(f"word{n} " for n in range(32))
USERS = 64
ANSWERS = {1: 100, 32: 1_200}
"""How many answers a round has, by callers; each user may ask 60 times a minute."""
PASSWORD = "a password of the bench"  # noqa: S105 - of a database that is dropped
OPERATOR = "operator@example.com"


@dataclass
class Contestant:
    """Where to ask, and with which bodies and headers, in turns."""

    name: str
    path: str
    asking: list[tuple[dict[str, Any], dict[str, str]]]
    client: httpx.AsyncClient
    waits_ms: dict[int, list[float]] = field(default_factory=dict)
    a_second: dict[int, list[float]] = field(default_factory=dict)


async def serve_model(port: int) -> None:
    model = Model()
    model.usual = Script(said=WORDS)
    async with model.serve(port):
        await anyio.sleep_forever()


def start(
    stack: ExitStack, database_url: str, redis_url: str | None, folder: Path
) -> tuple[int, int]:
    """Start the model and the service; answer their ports."""
    model_port, port = measure.free_port(), measure.free_port()
    command = [sys.executable, "-m", "bench.chat", "--model-port", str(model_port)]
    model = stack.enter_context(measure.child(command, log=folder / "model.log"))
    measure.await_port(model_port, model)
    env = {
        "DATABASE_URL": database_url,
        "DATA_DIR": str(folder / "data"),
        "BASE_URL": f"http://127.0.0.1:{port}",
        "TRUSTED_PROXIES": "127.0.0.1/32",
        "LLM_BASE_URL": f"http://127.0.0.1:{model_port}/v1",
        "LLM_API_KEY": KEY,
        "LLM_MODEL": NAME,
        "LOG_LEVEL": "warning",
        **({"REDIS_URL": redis_url} if redis_url else {}),
    }
    command = [sys.executable, "-m", "tolsey", "serve", "--port", str(port)]
    service = stack.enter_context(measure.child(command, env=env, log=folder / "service.log"))
    measure.await_service(port, service)
    return model_port, port


async def users(
    client: httpx.AsyncClient, database_url: str
) -> list[tuple[dict[str, Any], dict[str, str]]]:
    """Sign people up, each with a store and a hundred dollars."""
    database = Database(database_url)
    await database.open()
    await administrators.create_administrator(database, OPERATOR, PASSWORD)
    await database.close()
    login = {"email": OPERATOR, "password": PASSWORD}
    operator = session_of(await client.post("/api/auth/login", json=login))
    asking: list[tuple[dict[str, Any], dict[str, str]]] = []
    for number in range(USERS):
        named = {"email": f"u{number}@example.com", "organizationName": "Bench"}
        address = {"X-Forwarded-For": f"198.51.100.{number}", "Cookie": ""}
        made = await client.post(
            "/api/auth/signup", json={**named, "password": PASSWORD}, headers=address
        )
        headers, whose = session_of(made), made.json()["organization"]["id"]
        body = {"organizationId": whose, "name": "Store"}
        store = await client.post("/api/stores", json=body, headers=headers)
        gift = {"organizationId": whose, "amount": 100_000_000, "reason": "bench"}
        given = await client.post("/api/admin/credits/adjust", json=gift, headers=operator)
        given.raise_for_status()
        message = {"role": "user", "content": "How are sales?"}
        asking.append(({"storeId": store.json()["id"], "messages": [message]}, headers))
    return asking


def session_of(answer: httpx.Response) -> dict[str, str]:
    answer.raise_for_status()
    return {"Cookie": f"session={answer.cookies['session']}"}


async def ask(contestant: Contestant, number: int) -> float:
    """Read one answer to its end; give the milliseconds until its first word."""
    body, headers = contestant.asking[number % len(contestant.asking)]
    began, first = perf_counter(), 0.0
    async with contestant.client.stream(
        "POST", contestant.path, json=body, headers=headers
    ) as response:
        response.raise_for_status()
        async for piece in response.aiter_bytes():
            if not first and b"word0" in piece:
                first = perf_counter() - began
    return first * 1000


async def compete(
    contestant: Contestant, callers: int, numbers: "itertools.count[int]", answers: int
) -> None:
    left, waits = iter(range(answers)), list[float]()

    async def caller() -> None:
        for _ in left:
            waits.append(await ask(contestant, next(numbers)))

    began = perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(callers):
            tasks.start_soon(caller)
    contestant.a_second.setdefault(callers, []).append(answers / (perf_counter() - began))
    contestant.waits_ms.setdefault(callers, []).extend(waits)


def show(contestants: list[Contestant]) -> None:
    for callers in ANSWERS:
        measure.table(
            f"{callers} callers (answers a second: median of rounds)",
            ["asked", "answers/s", "first word p50 ms", "p99 ms"],
            [
                (
                    one.name,
                    statistics.median(one.a_second[callers]),
                    statistics.median(one.waits_ms[callers]),
                    statistics.quantiles(one.waits_ms[callers], n=100)[-1],
                )
                for one in contestants
            ],
        )


async def compare(model_port: int, port: int, database_url: str, *, quick: bool) -> None:
    async with AsyncExitStack() as clients:
        addresses = (f"http://127.0.0.1:{model_port}", f"http://127.0.0.1:{port}")
        direct, ours = [
            await clients.enter_async_context(
                httpx.AsyncClient(base_url=one, headers={"Origin": one}, timeout=30)
            )
            for one in addresses
        ]
        measure.say("signing users up")
        message = {"role": "user", "content": "How are sales?"}
        plain = {"model": NAME, "messages": [message], "stream": True}
        key = {"Authorization": f"Bearer {KEY}"}
        contestants = [
            Contestant("the model", "/v1/chat/completions", [(plain, key)], direct),
            Contestant("tolsey, paid for", "/api/chat", await users(ours, database_url), ours),
        ]
        numbers, rounds = itertools.count(), 1 if quick else 3
        for number, (callers, most) in itertools.product(range(rounds), ANSWERS.items()):
            answers = max(callers, most // (10 if quick else 1))
            for one in contestants if number % 2 == 0 else contestants[::-1]:
                one.client.cookies.clear()
                await compete(one, callers, numbers, answers)
                speed = one.a_second[callers][-1]
                measure.say(f"{callers} callers: {one.name}: {speed:,.0f} answers/s")
        show(contestants)


def main(*, quick: bool, loop: str) -> None:
    measure.machine(loop)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tolsey-bench-")))
        server_url, redis_url = stack.enter_context(measure.servers())
        url = stack.enter_context(measure.database(server_url))
        ports = start(stack, url, redis_url, folder)
        measure.run(lambda: compare(*ports, url, quick=quick), loop)


def parsed() -> argparse.Namespace:
    parser = measure.arguments(__doc__ or "")
    parser.add_argument("--model-port", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    given = parsed()
    if given.model_port:
        measure.run(lambda: serve_model(given.model_port), given.loop)
    else:
        main(quick=given.quick, loop=given.loop)
