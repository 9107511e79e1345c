import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx
import pytest

from tests.timing import until
from tolsey.sandbox.model import KEY, NAME, Model, Script

PATH = "/chat/completions"


@pytest.fixture
async def model() -> Model:
    return Model()


@pytest.fixture
async def client(model: Model) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {KEY}"}
    async with (
        model.serve() as url,
        httpx.AsyncClient(base_url=url, headers=headers, timeout=10) as opened,
    ):
        yield opened


def body(**more: Any) -> dict[str, Any]:
    message = {"role": "user", "content": "Are you there?"}
    options = {"include_usage": True}
    return {
        "model": NAME,
        "messages": [message],
        "stream": True,
        "stream_options": options,
        **more,
    }


def chunks(text: str) -> list[Any]:
    *events, last, rest = text.split("\n\n")
    assert (last, rest) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in events]


async def test_an_answer_streams_in_chunks_and_ends_with_what_was_used(
    client: httpx.AsyncClient,
) -> None:
    answer = await client.post(PATH, json=body())
    *said, ending, usage = chunks(answer.text)
    text = "".join(one["choices"][0]["delta"]["content"] for one in said)
    assert text.startswith("You asked: Are you there?")
    assert ending["choices"][0]["finish_reason"] == "stop"
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == len(said)
    assert usage["usage"]["prompt_tokens"] > 0


async def test_a_limit_is_heeded_and_use_is_told_only_when_asked(
    client: httpx.AsyncClient, model: Model
) -> None:
    model.usual = Script(said=("a", "b", "c"))
    answer = await client.post(PATH, json=body(max_tokens=2, stream_options=None))
    said = chunks(answer.text)
    assert [one["choices"][0]["delta"].get("content") for one in said] == ["a", "b", None]
    assert not any("usage" in one for one in said)


async def test_comments_are_sent_while_a_gate_is_waited_for(
    client: httpx.AsyncClient, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tolsey.sandbox.model.COMMENT_SECONDS", 0.01)
    gate = anyio.Event()
    model.usual = Script(said=("a", "b"), gates={1: gate})
    said = []
    async with client.stream("POST", PATH, json=body()) as answer:
        async for line in answer.aiter_lines():
            if line.startswith(": "):
                gate.set()
            elif line:
                said.append(line)
    assert gate.is_set()
    assert len(said) == 5  # two words, the ending, what was used, [DONE]


async def test_scripts_are_played_one_after_the_other_then_the_usual_one(
    client: httpx.AsyncClient, model: Model
) -> None:
    model.scripts += [Script(status=503), Script(said=("once",))]
    model.usual = Script(said=("always",))
    answers = [await client.post(PATH, json=body()) for _ in range(3)]
    assert [one.status_code for one in answers] == [503, 200, 200]
    assert ["once" in one.text for one in answers] == [False, True, False]
    assert len(model.asked) == 3


async def test_a_stranger_and_a_wrong_address_are_refused(
    client: httpx.AsyncClient, model: Model
) -> None:
    wrong = await client.post(PATH, json=body(), headers={"Authorization": "Bearer other"})
    assert (wrong.status_code, model.asked) == (401, [])
    assert (await client.post("/completions", json=body())).status_code == 404


async def test_a_cut_answer_ends_without_its_end(client: httpx.AsyncClient, model: Model) -> None:
    model.usual = Script(said=("a", "b", "c"), cut_after=2)
    with pytest.raises(httpx.RemoteProtocolError):
        await client.post(PATH, json=body())


async def test_an_answer_that_is_given_up_is_counted(
    client: httpx.AsyncClient, model: Model
) -> None:
    model.usual = Script(said=("a", "b"), gates={1: anyio.Event()})
    async with client.stream("POST", PATH, json=body()) as response:
        assert "a" in await anext(response.aiter_text())
    await until(lambda: model.left != 0)
