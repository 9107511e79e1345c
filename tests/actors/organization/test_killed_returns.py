"""A process dies in the middle of giving a payment back: the processor sees each step once."""

import signal
import subprocess
import sys
from datetime import UTC, datetime

import anyio
import pytest

from tests.actors.organization.house import House, applier, opened, process
from tests.http.payments.market import opened as market_opened
from tolsey.storage.database import Database

pytestmark = pytest.mark.anyio

SURE = 75
"""At least so many times its loop turns from the request to the end; on a busy machine, 280 times."""


async def give_back(house: House, database_url: str, payment: str, dies_at: int) -> tuple[int, str]:
    """Let a process of its own give a payment back; answers how it ended and what it said."""
    command = [sys.executable, "-m", "tests.actors.organization.returning"]
    given = [database_url, house.market.processor.url, payment, str(dies_at)]
    with anyio.fail_after(240):
        ended = await anyio.run_process([*command, *given], check=False, stderr=subprocess.STDOUT)
    return ended.returncode, ended.stdout.decode()


@pytest.mark.parametrize("dies_at", [*range(1, SURE, 10), *range(90, 280, 21)])
async def test_a_process_that_is_killed_gives_back_once_and_ends_the_plan(
    database: Database, database_url: str, dies_at: int
) -> None:
    async with (
        market_opened(datetime.now(UTC)) as market,
        opened(market, database) as house,
    ):
        await house.buy()
        (row,) = await database.fetch("SELECT reference FROM credit_lots")
        killed, said = await give_back(house, database_url, row["reference"], dies_at)
        assert killed == -signal.SIGKILL or dies_at > SURE, said
        for _ in range(3):  # on a machine that is too busy one may give up: another follows it
            ended, said = await give_back(house, database_url, row["reference"], 0)
            if ended == 0:
                break
        assert ended == 0, said
        assert any(line.startswith("done ") for line in said.splitlines()), said

        (refund,) = market.made("refund")
        (subscription,) = market.made("subscription")
        assert refund["amount"] == 8_690
        assert subscription["status"] == "canceled"
        async with process(database, "after") as house.runtime:
            house.applier = applier(market, database, house.runtime)
            await house.settle()
            assert (await house.plan(), await house.dollars()) == ("free", 0)
            standing = (await house.credits()).standing
            assert (standing.held, standing.available) == (0, 0)
        assert (await house.audit()).count("refund.requested") == 1
        assert await database.fetch("SELECT FROM dead_letters") == []
