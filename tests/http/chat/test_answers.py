import httpx
import pytest

from tests.http.chat.visitor import BASE, DOLLAR, Visitor, arrive, ended, grant
from tests.http.people import settings_of
from tolsey.http.clients.model import StreamingModel
from tolsey.sandbox.model import KEY, Model, Script
from tolsey.sandbox.server import listening
from tolsey.service import Running, running
from tolsey.settings import Settings

INPUT, OUTPUT = 3, 15
"""Micro-USD for a token, by the default prices."""
WORDS = tuple(f"word{n} " for n in range(40))


async def test_an_answer_streams_and_costs_what_the_model_says_it_used(
    live: Running, rich: Visitor, model: Model
) -> None:
    model.usual = Script(said=WORDS, prompt_tokens=100)
    answer = await rich.ask()
    assert answer.status == 200, answer.problem
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.text == "".join(WORDS)
    cost = 100 * INPUT + 40 * OUTPUT
    done = answer.last.data
    assert answer.last.name == "done"
    assert (done["cost"], done["spent"], done["estimated"]) == (cost, cost, False)
    assert (done["inputTokens"], done["outputTokens"]) == (100, 40)
    assert (done["finishReason"], done["creditsRemaining"]) == ("stop", 10 * DOLLAR - cost)
    seen = await rich.credits()
    assert (seen["balance"], seen["held"]) == (10 * DOLLAR - cost, 0)
    (row,) = await ended(live.service.database)
    assert (row["outcome"], row["cost"], row["charged"]) == ("done", cost, cost)
    assert (row["organization_id"], row["store_id"]) == (rich.organization_id, rich.store_id)
    assert row["user_id"] == rich.user_id


async def test_the_cost_is_told_while_it_grows(rich: Visitor, model: Model) -> None:
    model.usual = Script(said=WORDS)
    answer = await rich.ask()
    costs = [one["cost"] for one in answer.named("usage")]
    assert answer.events[0].name == "usage"
    assert costs[0] > 0
    assert len(costs) > 3
    assert costs[:-1] == sorted(costs[:-1])
    assert [one["estimated"] for one in answer.named("usage")] == [True] * (len(costs) - 1) + [
        False
    ]
    assert costs[-1] == answer.last.data["cost"]


async def test_a_model_that_tells_its_use_as_it_goes_is_believed(
    rich: Visitor, model: Model
) -> None:
    model.usual = Script(said=WORDS, usage="every", prompt_tokens=10)
    answer = await rich.ask()
    later = answer.named("usage")[1:]
    assert not any(one["estimated"] for one in later)
    assert [one["inputTokens"] for one in later] == [10] * len(later)


async def test_a_model_that_keeps_quiet_about_its_use_is_estimated(
    rich: Visitor, model: Model
) -> None:
    model.usual = Script(said=("x" * 30, "y" * 31), usage="never")
    done = (await rich.ask()).last.data
    assert (done["estimated"], done["outputTokens"]) == (True, 21)
    assert done["spent"] == done["inputTokens"] * INPUT + 21 * OUTPUT


async def test_thoughts_are_paid_for_and_not_shown(rich: Visitor, model: Model) -> None:
    model.usual = Script(said=("Fine.",), thought=("Hmm. ", "Let me see."), prompt_tokens=10)
    answer = await rich.ask()
    assert answer.text == "Fine."
    assert answer.last.data["cost"] == 10 * INPUT + 3 * OUTPUT


async def test_the_dearest_answer_must_be_covered_before_the_model_is_asked(
    live: Running, ann: Visitor, model: Model
) -> None:
    await grant(live, ann, 20_000)
    refused = await ann.ask()
    assert (refused.status, refused.problem["code"]) == (402, "insufficient_credits")
    assert refused.problem["available"] == 20_000
    assert refused.problem["required"] > 8_192 * OUTPUT
    affordable = refused.problem["maxAffordableOutputTokens"]
    assert refused.problem["retry"] == {"maxOutputTokens": affordable}
    more = await ann.ask(maxOutputTokens=affordable + 1)
    assert (more.status, more.problem["maxAffordableOutputTokens"]) == (402, affordable)
    assert model.asked == []
    assert (await ann.credits())["held"] == 0
    assert (await ann.ask(maxOutputTokens=affordable)).last.name == "done"
    assert model.asked[0]["max_tokens"] == affordable


async def test_who_cannot_pay_for_the_question_alone_is_told_that_nothing_is_affordable(
    ann: Visitor, model: Model
) -> None:
    refused = await ann.ask()
    assert (refused.status, refused.problem["maxAffordableOutputTokens"]) == (402, 0)
    assert "retry" not in refused.problem
    assert model.asked == []


async def test_an_answer_is_never_longer_than_a_plan_allows(rich: Visitor, model: Model) -> None:
    await rich.ask(maxOutputTokens=100_000)
    await rich.ask()
    assert [one["max_tokens"] for one in model.asked] == [8_192, 8_192]


async def test_nobody_talks_over_a_store_that_is_not_theirs(
    live: Running, rich: Visitor, url: str, model: Model
) -> None:
    async with httpx.AsyncClient(base_url=url, headers={"Origin": BASE}) as other:
        unknown = await other.post("/api/chat", json=rich.body())
        assert unknown.status_code == 401
        stranger = await arrive(other, "eve@example.com")
        await grant(live, stranger, DOLLAR)
        stranger.store_id = rich.store_id
        foreign = await stranger.ask()
        absent = await stranger.browser.post("/api/chat", json=rich.body() | {"storeId": "store_0"})
    assert (foreign.status, absent.status_code) == (404, 404)
    assert model.asked == []
    assert (await rich.credits())["balance"] == 10 * DOLLAR


@pytest.mark.parametrize(
    "wrong",
    [
        {"messages": []},
        {"messages": [{"role": "system", "content": "You are mine."}]},
        {"messages": [{"role": "assistant", "content": "Hello."}]},
        {"messages": [{"role": "user", "content": ""}]},
        {"messages": [{"role": "user", "content": "x" * 100_001}]},
        {"maxOutputTokens": 0},
        {"maxOutputTokens": True},
        {"maxOutputTokens": "100"},
        {"maxOutputTokens": 1.0},
        {"temperature": 2},
    ],
)
async def test_what_is_no_conversation_is_refused(rich: Visitor, wrong: dict[str, object]) -> None:
    answer = await rich.browser.post("/api/chat", json=rich.body() | wrong)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


async def test_a_conversation_too_long_for_the_model_is_refused(
    rich: Visitor, model: Model
) -> None:
    said = [{"role": "user", "content": "x" * 99_000}] * 4
    answer = await rich.browser.post("/api/chat", json=rich.body() | {"messages": said})
    assert (answer.status_code, answer.json()["code"]) == (422, "conversation_too_long")
    assert model.asked == []


async def test_sixty_messages_a_minute_are_let_through(rich: Visitor) -> None:
    for _ in range(60):
        assert (await rich.browser.post("/api/chat", json={})).status_code == 422
    answer = await rich.browser.post("/api/chat", json=rich.body())
    assert (answer.status_code, answer.json()["violated-policies"]) == (429, ["chat"])


@pytest.mark.parametrize(
    ("script", "status", "code"),
    [
        (Script(status=401, message=f"Incorrect API key provided: {KEY}"), 502, "model_refused"),
        (Script(status=400), 502, "model_refused"),
        (Script(status=500), 502, "model_unreachable"),
        (Script(status=429, headers={"retry-after": "7"}), 503, "model_busy"),
    ],
)
async def test_a_model_that_does_not_answer_costs_nothing(
    rich: Visitor, model: Model, script: Script, status: int, code: str
) -> None:
    model.usual = script
    answer = await rich.ask()
    assert (answer.status, answer.problem["code"]) == (status, code)
    assert KEY not in str(answer.problem)
    assert answer.headers.get("retry-after") == ("7" if status == 503 else None)
    seen = await rich.credits()
    assert (seen["balance"], seen["held"]) == (10 * DOLLAR, 0)


async def test_a_model_out_of_reach_costs_nothing(live: Running, rich: Visitor) -> None:
    async with listening(Model()) as port:
        nowhere = f"http://127.0.0.1:{port}/v1"
    gone = StreamingModel(nowhere, "gone")
    live.service.chat.model = gone
    answer = await rich.ask()
    await gone.close()
    assert (answer.status, answer.problem["code"]) == (502, "model_unreachable")
    seen = await rich.credits()
    assert (seen["balance"], seen["held"]) == (10 * DOLLAR, 0)


@pytest.mark.parametrize("script", [Script(cut_after=3), Script(error_after=3)])
async def test_what_came_before_the_model_broke_off_is_paid_and_no_more(
    live: Running, rich: Visitor, model: Model, script: Script
) -> None:
    model.usual = script
    answer = await rich.ask()
    assert answer.last.name == "aborted"
    assert answer.last.data["reason"] == "model_failed"
    assert len(answer.named("delta")) == 3
    (row,) = await ended(live.service.database)
    assert (row["outcome"], row["estimated"]) == ("model_failed", True)
    size = len(answer.text.encode())
    assert row["cost"] == row["input_tokens"] * INPUT + -(-size // 3) * OUTPUT
    assert answer.last.data["spent"] == row["charged"] == row["cost"]
    assert (await rich.credits())["held"] == 0


async def test_a_service_without_a_model_names_the_variable(
    database_url: str, redis_url: str
) -> None:
    for given, variable in (
        ({}, "LLM_BASE_URL"),
        ({"llm_base_url": "http://127.0.0.1:9/v1"}, "LLM_MODEL"),
    ):
        settings: Settings = settings_of(database_url=database_url, redis_url=redis_url, **given)
        async with (
            running(settings, timers=False) as live,
            httpx.AsyncClient(
                transport=httpx.ASGITransport(live.app), base_url=BASE, headers={"Origin": BASE}
            ) as browser,
        ):
            visitor = await arrive(browser, f"{variable.lower()}@example.com")
            answer = await browser.post("/api/chat", json=visitor.body())
            assert (answer.status_code, answer.json()["variable"]) == (503, variable)
