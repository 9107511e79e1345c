import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.timing import until
from tolsey.actors.chat import Usage
from tolsey.actors.ports import Unset
from tolsey.actors.refusals import MissingCredential
from tolsey.http.clients.model import AnswerPart, ModelFailed, StreamingModel, read
from tolsey.sandbox.model import Model, Script
from tolsey.sandbox.server import Receive, Send, listening

QUESTION = [{"role": "user", "content": "Are you there?"}]
STREAM = (
    b": hello\r\n\r\n"
    b'data: {"choices":[{"delta":{"role":"assistant","content":""}}],"usage":null}\r\n\r\n'
    b'event: x\ndata: {"choices":[{"delta":\ndata: {"content":"caf\xc3\xa9"}}]}\n\n'
    b'data:{"choices":[{"delta":{"reasoning":"hm"},"finish_reason":"length"}]}\n\n'
    b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}\n\n'
    b"data: [DONE]\n\ndata: nothing after the end is read\n\n"
)
PARTS = [
    AnswerPart(),
    AnswerPart(text="café"),
    AnswerPart(reasoning="hm", finish="length"),
    AnswerPart(usage=Usage(3, 2)),
]


class Parrot:
    """A service that answers with given bytes, in given pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces: Sequence[bytes] = pieces

    async def __call__(self, scope: dict[str, Any], _receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for piece in self.pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def said_by(model: StreamingModel, output_tokens: int = 100) -> list[AnswerPart]:
    async with model.answer(QUESTION, output_tokens) as parts:
        return [part async for part in parts]


async def repeated(*pieces: bytes) -> list[AnswerPart]:
    async with listening(Parrot(*pieces)) as port:
        model = StreamingModel(f"http://127.0.0.1:{port}/v1", "parrot")
        try:
            return await said_by(model)
        finally:
            await model.close()


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
async def test_a_stream_reads_the_same_wherever_it_is_cut_into_pieces(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[a:b] for a, b in pairwise(places) if a < b]
    assert await repeated(*pieces) == PARTS


@pytest.mark.parametrize(
    "stream",
    [
        b"",
        b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n',
        b"data: <html>\n\n",
        b"data: []\n\n",
        b'data: {"error":{"message":"no"}}\n\n',
        b"data: " + b"x" * (1 << 20) + b"x",
    ],
)
async def test_a_stream_that_breaks_off_or_cannot_be_read_has_failed(stream: bytes) -> None:
    with pytest.raises(ModelFailed):
        await repeated(stream)


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": -1, "completion_tokens": 2},
        {"prompt_tokens": 1, "completion_tokens": 10**12},
        {"prompt_tokens": True, "completion_tokens": 2},
        {"prompt_tokens": 1.5, "completion_tokens": 2},
        {"completion_tokens": 2},
        {
            "prompt_tokens": 1,
            "completion_tokens": 2,
            "completion_tokens_details": {"reasoning_tokens": "x"},
        },
        "many",
    ],
)
def test_a_use_that_no_model_can_have_is_not_believed(usage: Any) -> None:
    assert read(json.dumps({"usage": usage}).encode()).usage is None


@pytest.mark.parametrize(
    "chunk",
    [{}, {"choices": None}, {"choices": 3}, {"choices": ["a"]}, {"choices": [{"delta": [1]}]}],
)
def test_a_chunk_of_another_shape_says_nothing(chunk: Any) -> None:
    assert read(json.dumps(chunk).encode()) == AnswerPart()


async def test_the_request_is_what_compatible_services_understand() -> None:
    stand_in = Model()
    async with stand_in.serve() as url:
        model = StreamingModel(url, "m", stand_in.key, limit_field="max_completion_tokens")
        await said_by(model, 7)
        await model.close()
    assert stand_in.asked == [
        {
            "model": "m",
            "messages": QUESTION,
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_completion_tokens": 7,
        }
    ]


async def test_a_model_that_falls_silent_is_given_up() -> None:
    stand_in = Model()
    stand_in.usual = Script(said=("a", "b"), gates={1: anyio.Event()})
    async with stand_in.serve() as url:
        model = StreamingModel(url, "m", stand_in.key, silence_seconds=0.2)
        with pytest.raises(ModelFailed) as failed:
            await said_by(model)
        await model.close()
    assert failed.value.code == "model_unreachable"


async def test_leaving_the_block_gives_the_answer_up() -> None:
    stand_in = Model()
    stand_in.usual = Script(said=("a", "b"), gates={1: anyio.Event()})
    async with stand_in.serve() as url:
        model = StreamingModel(url, "m", stand_in.key)
        async with model.answer(QUESTION, 10) as parts:
            assert (await anext(parts)).text == "a"
        await until(lambda: stand_in.left != 0)
        await model.close()


def test_a_model_that_is_not_set_names_its_variable() -> None:
    unset = Unset("LLM_MODEL")
    with pytest.raises(MissingCredential, match="LLM_MODEL"):
        _ = unset.name
    with pytest.raises(MissingCredential, match="LLM_MODEL"):
        unset.answer(QUESTION, 1)
