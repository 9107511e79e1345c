"""The ledger cannot be asked: nothing starts unpaid, nothing goes on unpaid, nothing is paid twice."""

from datetime import datetime, timedelta
from typing import Any

import anyio
import pytest

from tests.http.chat.visitor import DOLLAR, StreamEvent, Visitor, ended, events_of
from tests.http.people import Clock
from tolsey.actors.organization.ledger.answers import MOST_WITHOUT_HOLD, CheckAnswer
from tolsey.actors.organization.ledger.messages import ExtendHold, HoldCredits, SettleHold
from tolsey.actors.organization.messages import organization
from tolsey.http.chat import credit_meter
from tolsey.runtime.errors import DeadlineExceeded, ShardUnavailable
from tolsey.runtime.messages import ActorId, Message
from tolsey.sandbox.model import Model, Script
from tolsey.service import Running


class Faulty:
    """Asks the real ledger, except that some messages of a type get lost on the way or back."""

    def __init__(self, live: Running, kind: type[Message[Any]], times: int, *, back: bool) -> None:
        self.ask, self.kind, self.times, self.back = live.service.chat.ask, kind, times, back
        live.service.chat.ask = self

    async def __call__(self, to: ActorId, message: Message[Any]) -> Any:
        if not isinstance(message, self.kind) or self.times <= 0:
            return await self.ask(to, message)
        self.times -= 1
        if not self.back:
            raise ShardUnavailable("cut off")
        await self.ask(to, message)
        raise DeadlineExceeded("no answer")


LIVE = "SELECT FROM chat_generations WHERE ended_at IS NULL"


async def look(live: Running, visitor: Visitor, at: datetime, **seen: Any) -> None:
    """Let it be time to look after the answer."""
    (row,) = await live.service.database.fetch("SELECT id FROM chat_generations")
    message = CheckAnswer(generation_id=row["id"], at=at, **seen)
    await live.service.runtime.ask(organization(visitor.organization_id), message)


async def test_without_the_ledger_the_model_is_not_asked(
    live: Running, rich: Visitor, model: Model
) -> None:
    Faulty(live, HoldCredits, 1, back=False)
    answer = await rich.ask()
    assert (answer.status, answer.problem["code"]) == (503, "shard_unavailable")
    assert model.asked == []
    assert not await live.service.database.fetch("SELECT 1 FROM chat_generations")


async def test_a_hold_whose_answer_was_lost_is_let_go(
    live: Running, rich: Visitor, model: Model
) -> None:
    Faulty(live, HoldCredits, 1, back=True)
    assert (await rich.ask()).status == 504
    seen = await rich.credits()
    assert (seen["available"], seen["held"]) == (10 * DOLLAR, 0)
    assert model.asked == []


async def test_a_settlement_is_tried_again_until_it_is_written(
    live: Running, rich: Visitor
) -> None:
    Faulty(live, SettleHold, 2, back=False)
    answer = await rich.ask()
    assert answer.last.name == "done"
    (row,) = await ended(live.service.database)
    assert row["charged"] == answer.last.data["spent"] > 0
    assert (await rich.credits())["balance"] == 10 * DOLLAR - row["charged"]


async def test_a_settlement_whose_answer_was_lost_is_not_made_twice(
    live: Running, rich: Visitor, clock: Clock
) -> None:
    Faulty(live, SettleHold, 1, back=True)
    answer = await rich.ask()
    spent = answer.last.data["spent"]
    assert (await rich.credits())["balance"] == 10 * DOLLAR - spent
    await look(live, rich, clock())  # its process may still be at it
    assert await live.service.database.fetch(LIVE)
    clock.advance(timedelta(minutes=2))
    await look(live, rich, clock(), without_hold=MOST_WITHOUT_HOLD)
    (row,) = await ended(live.service.database)
    assert row["charged"] == row["cost"] == spent
    assert (await rich.credits())["balance"] == 10 * DOLLAR - spent


async def test_an_answer_that_cannot_be_settled_is_ended_by_its_lease_at_its_last_cost(
    live: Running, rich: Visitor, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credit_meter, "PAUSES", (0.0, 0.0))
    Faulty(live, SettleHold, 100, back=False)
    answer = await rich.ask()
    assert (answer.last.name, answer.last.data["creditsRemaining"]) == ("done", None)
    await look(live, rich, clock())
    assert await live.service.database.fetch(LIVE)
    clock.advance(timedelta(minutes=16))
    for _ in range(2):
        await look(live, rich, clock())
    (row,) = await ended(live.service.database)
    (hold,) = await live.service.database.fetch("SELECT used, amount FROM credit_holds")
    assert row["outcome"] == "crashed"
    assert 0 < row["charged"] == row["cost"] == hold["used"] <= hold["amount"]
    seen = await rich.credits()
    assert (seen["balance"], seen["held"]) == (10 * DOLLAR - row["charged"], 0)


@pytest.mark.parametrize("minutes", [1, 16])
async def test_without_checkpoints_an_answer_goes_on_as_long_as_its_lease_and_no_longer(
    live: Running, rich: Visitor, model: Model, clock: Clock, minutes: int
) -> None:
    gate = anyio.Event()
    model.usual = Script(said=("Fine. ", "Thanks."), gates={1: gate})
    lost = Faulty(live, ExtendHold, 10**6, back=False)
    told: list[StreamEvent] = []
    async with rich.asking() as response:
        async for one in events_of(response):
            told.append(one)
            if one.name == "delta" and not gate.is_set():
                clock.advance(timedelta(minutes=minutes))
                tries = lost.times
                with anyio.fail_after(60):
                    while lost.times == tries:
                        await anyio.sleep(0.01)
                if minutes == 1:
                    gate.set()
    assert told[-1].name == ("done" if minutes == 1 else "aborted")
    assert told[-1].data.get("reason") == (None if minutes == 1 else "unavailable")
