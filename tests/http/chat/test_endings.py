"""Answers that end before their end, and ones that get more credit on the way."""

import anyio

from tests.http.chat.visitor import DOLLAR, StreamEvent, Visitor, ended, events_of, grant
from tests.http.people import Clock
from tests.timing import until
from tolsey.actors.organization.ledger.messages import ReleaseHold
from tolsey.actors.organization.messages import organization
from tolsey.http.chat.answering import LAST_SECONDS
from tolsey.sandbox.model import Model, Script
from tolsey.server import GRACE_SECONDS
from tolsey.service import Running

INPUT, OUTPUT = 3, 15
TWELVE = "twelve bytes"
"""Four tokens, by their size."""


async def exactly(live: Running, visitor: Visitor, tokens: int) -> int:
    """Give what an answer of so many tokens needs, to the micro-dollar."""
    refused = await visitor.ask(maxOutputTokens=tokens)
    required = int(refused.problem["required"])
    await grant(live, visitor, required)
    return required


async def gone(model: Model) -> None:
    await until(lambda: model.left >= 1)


async def test_an_answer_stops_where_the_credits_do(
    live: Running, ann: Visitor, model: Model
) -> None:
    given = await exactly(live, ann, 10)
    never = anyio.Event()
    # 12 bytes a delta are 4 tokens: the third is the first that is not covered.
    model.usual = Script(said=(TWELVE,) * 50, heeds_limit=False, gates={3: never})
    answer = await ann.ask(maxOutputTokens=10)
    assert answer.last.name == "aborted"
    assert answer.last.data["reason"] == "balance"
    assert answer.last.data["spent"] == given
    assert answer.last.data["creditsRemaining"] == 0
    assert len(answer.named("delta")) == 3
    await gone(model)
    seen = await ann.credits()
    assert (seen["balance"], seen["available"], seen["held"]) == (0, 0, 0)
    (row,) = await ended(live.service.database)
    assert (row["outcome"], row["charged"]) == ("balance", given)
    assert 0 < row["cost"] - row["charged"] <= 4 * OUTPUT  # one delta


async def test_credit_that_arrives_on_the_way_carries_an_answer_on(
    live: Running, ann: Visitor, model: Model
) -> None:
    given = await exactly(live, ann, 10)
    gate = anyio.Event()
    script = Script(said=(TWELVE,) * 20, heeds_limit=False, gates={2: gate}, prompt_tokens=10)
    model.usual = script
    told: list[StreamEvent] = []
    async with ann.asking(maxOutputTokens=10) as response:
        async for one in events_of(response):
            told.append(one)
            if one.name == "delta" and not gate.is_set():
                await grant(live, ann, DOLLAR, key="purchase:pi_1")
                gate.set()
    assert told[-1].name == "done"
    cost = 10 * INPUT + 20 * OUTPUT
    assert told[-1].data["spent"] == cost
    held = [one.data["held"] for one in told if one.name == "usage"]
    assert held[0] == given < held[-1]
    seen = await ann.credits()
    assert (seen["balance"], seen["held"]) == (given + DOLLAR - cost, 0)
    ledger = await ann.browser.get(
        "/api/credits/ledger", params={"organizationId": ann.organization_id}
    )
    kinds = [one["kind"] for one in ledger.json()["items"]]
    assert kinds == ["settle", "extend", "bonus", "hold", "bonus"]


async def test_what_the_model_used_beyond_the_hold_is_taken_from_what_is_there(
    live: Running, ann: Visitor, model: Model
) -> None:
    given = await exactly(live, ann, 10)
    await grant(live, ann, 30, key="more")
    model.usual = Script(said=("Fine.",), prompt_tokens=given // INPUT + 100)
    answer = await ann.ask(maxOutputTokens=10)
    assert answer.last.name == "done"
    assert answer.last.data["spent"] == given + 30
    assert (await ann.credits())["balance"] == 0
    (row,) = await ended(live.service.database)
    assert row["cost"] > row["charged"] == given + 30


async def test_who_leaves_pays_for_the_question_and_for_what_came_until_then(
    live: Running, rich: Visitor, model: Model
) -> None:
    never = anyio.Event()
    model.usual = Script(said=(TWELVE,) * 50, gates={5: never})
    seen = 0
    async with rich.asking() as response:
        async for one in events_of(response):
            seen += one.name == "delta"
            if seen == 5:
                break
    await gone(model)
    (row,) = await ended(live.service.database)
    assert (row["outcome"], row["estimated"], row["output_tokens"]) == ("left", True, 20)
    assert row["charged"] == row["cost"] == row["input_tokens"] * INPUT + 20 * OUTPUT
    after = await rich.credits()
    assert (after["balance"], after["held"]) == (10 * DOLLAR - row["charged"], 0)


async def test_who_leaves_before_the_first_word_pays_for_the_question(
    live: Running, rich: Visitor, model: Model
) -> None:
    never = anyio.Event()
    model.usual = Script(said=("Fine.",), gates={0: never})
    async with rich.asking() as response:
        assert response.status_code == 200
    await gone(model)
    (row,) = await ended(live.service.database)
    assert (row["outcome"], row["output_tokens"]) == ("left", 0)
    assert row["charged"] == row["input_tokens"] * INPUT > 0
    assert (await rich.credits())["held"] == 0


async def test_a_service_that_stops_settles_what_it_breaks_off(
    live: Running, rich: Visitor, model: Model
) -> None:
    never = anyio.Event()
    model.usual = Script(said=(TWELVE,) * 50, gates={2: never})
    told: list[StreamEvent] = []
    async with rich.asking() as response:
        async for one in events_of(response):
            told.append(one)
            if sum(known.name == "delta" for known in told) == 2 and one.name == "delta":
                await live.service.chat.stop()
    assert (told[-1].name, told[-1].data["reason"]) == ("aborted", "stopping")
    (row,) = await ended(live.service.database)
    assert (row["outcome"], row["output_tokens"]) == ("stopping", 8)
    assert told[-1].data["spent"] == row["charged"] == row["cost"]
    late = await rich.ask()
    assert (late.status, late.problem["code"]) == (503, "shard_unavailable")


async def test_a_service_that_is_about_to_stop_begins_no_answer_and_ends_those_it_makes(
    live: Running, rich: Visitor, model: Model
) -> None:
    gate = anyio.Event()
    model.usual = Script(said=("Fine. ", "Thanks."), gates={1: gate})
    async with rich.asking() as response:
        live.service.chat.retire()
        late = await rich.ask()
        gate.set()
        told = [one async for one in events_of(response)]
    assert (late.status, late.problem["code"]) == (503, "shard_unavailable")
    assert int(late.headers["retry-after"]) > 0
    assert told[-1].name == "done"
    assert LAST_SECONDS < GRACE_SECONDS, "the server must still send what they end with"


async def test_an_answer_whose_hold_is_gone_goes_no_further(
    live: Running, rich: Visitor, model: Model, clock: Clock
) -> None:
    never = anyio.Event()
    model.usual = Script(said=(TWELVE,) * 50, gates={2: never})
    told: list[StreamEvent] = []
    async with rich.asking() as response:
        async for one in events_of(response):
            told.append(one)
            if one.name == "delta" and len(told) == 2:
                row = await live.service.database.fetchrow("SELECT id FROM chat_generations")
                assert row is not None
                message = ReleaseHold(f"chat:{row['id']}", clock())
                await live.service.runtime.ask(organization(rich.organization_id), message)
    assert (told[-1].name, told[-1].data["reason"]) == ("aborted", "unavailable")
    await gone(model)


async def test_a_repeat_with_the_same_key_is_told_the_same_and_costs_nothing(
    live: Running, rich: Visitor, model: Model
) -> None:
    model.usual = Script(said=("Fine. ", "Thanks."))
    first = await rich.ask(key="one")
    again = await rich.ask(key="one")
    assert again.headers["idempotent-replayed"] == "true"
    assert again.events == first.events
    assert len(model.asked) == 1
    assert (await rich.credits())["balance"] == 10 * DOLLAR - first.last.data["spent"]
    left = Script(said=(TWELVE,) * 9, gates={1: anyio.Event()})
    model.scripts.append(left)
    async with rich.asking(key="two") as response:
        assert (await anext(events_of(response))).name == "usage"
    await ended(live.service.database, 2)
    missed = await rich.ask(key="two")
    assert (missed.last.name, missed.last.data["reason"]) == ("aborted", "left")
    other = await rich.ask("Something else?", key="one")
    assert (other.status, other.problem["code"]) == (422, "idempotency_key_reused")
    assert len(await ended(live.service.database)) == len(model.asked) == 2


async def test_what_the_model_did_not_answer_can_be_asked_again_with_the_same_key(
    live: Running, rich: Visitor, model: Model
) -> None:
    model.scripts.append(Script(status=500))
    assert (await rich.ask(key="one")).status == 502
    assert not await live.service.database.fetch("SELECT 1 FROM chat_generations")
    again = await rich.ask(key="one")
    assert again.last.name == "done"
    assert (await rich.credits())["balance"] == 10 * DOLLAR - again.last.data["spent"]


async def test_a_repeat_while_the_first_is_at_work_waits_its_turn(
    live: Running, rich: Visitor, model: Model
) -> None:
    gate = anyio.Event()
    model.usual = Script(said=("Fine. ", "Thanks."), gates={1: gate})
    async with rich.asking(key="one") as response:
        again = await rich.ask(key="one")
        assert (again.status, again.problem["code"]) == (409, "request_in_progress")
        # The key is free again, as after a minute: the answer is still made only once.
        await live.service.database.execute("UPDATE idempotency_keys SET locked_until = NULL")
        late = await rich.ask(key="one")
        assert (late.status, late.problem["code"]) == (409, "duplicate")
        gate.set()
        told = [one async for one in events_of(response)]
    assert told[-1].name == "done"
    assert len(model.asked) == 1
    assert (await rich.credits())["held"] == 0
