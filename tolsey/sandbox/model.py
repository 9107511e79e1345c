"""A stand-in of a language model: an OpenAI-compatible chat service that streams on loopback.

It answers from a script, so that it can be slow, fail, be cut, or keep quiet about what it used.
"""

import hmac
import re
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Literal
from zlib import crc32

import anyio
import orjson

from tolsey.sandbox.server import Receive, Send, listening, whole

KEY: Final = "sk-sandbox"
NAME: Final = "sandbox-model"
COMPLETIONS: Final = "/v1/chat/completions"
EMBEDDINGS: Final = "/v1/embeddings"
EMBEDDER: Final = "sandbox-embedding"
DIMENSIONS: Final = 64
ALIKE: Final = {
    "package": "parcel",
    "packages": "parcel",
    "parcels": "parcel",
    "shipment": "parcel",
}
"""Words that mean the same to the stand-in, as a real model would find by itself."""
CHARACTERS_PER_TOKEN: Final = 4
TOKENS_PER_MESSAGE: Final = 4
COMMENT_SECONDS: Final = 15.0
"""How long nothing is said before a comment is (HTML standard, section 9.2.7)."""


@dataclass(frozen=True, slots=True)
class Script:
    """How one answer goes: a delta counts as one token.

    `said` None answers from the question; `calls` are tools that are wanted used, with their arguments. `gates` are waited for before the delta of that number.
    `cut_after` ends the connection, `error_after` sends an error, after so many deltas.
    """

    said: tuple[str, ...] | None = None
    calls: tuple[tuple[str, str], ...] = ()
    thought: tuple[str, ...] = ()
    usage: Literal["end", "every", "never"] = "end"
    prompt_tokens: int | None = None
    seconds_between: float = 0.0
    status: int = 200
    message: str = "The model is not well."
    headers: Mapping[str, str] = field(default_factory=dict)
    gates: Mapping[int, anyio.Event] = field(default_factory=dict)
    cut_after: int | None = None
    error_after: int | None = None
    heeds_limit: bool = True


class Model:
    """A chat service with a key, and what it was asked; `left` counts answers that were given up."""

    def __init__(self, key: str | None = KEY) -> None:
        self.key = key
        self.usual = Script()
        self.scripts: deque[Script] = deque()
        """Played first, one an answer; then the usual one is."""
        self.asked: list[dict[str, Any]] = []
        self.embedded: list[dict[str, Any]] = []
        self.embedding_gate: anyio.Event | None = None
        self.left = 0
        self.url = ""

    @property
    def settings(self) -> dict[str, str]:
        """The settings with which a service talks to it."""
        return {"llm_base_url": self.url, "llm_api_key": KEY, "llm_model": NAME}

    @asynccontextmanager
    async def serve(self, port: int = 0) -> AsyncIterator[str]:
        """Serve on loopback and give the address for `LLM_BASE_URL`."""
        async with listening(self, port) as chosen:
            self.url = f"http://127.0.0.1:{chosen}/v1"
            yield self.url

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        body = await whole(receive)
        refusal = self._refusal(scope)
        if refusal is not None:
            await _refuse(send, *refusal)
            return
        asked = orjson.loads(body)
        if scope["path"] == EMBEDDINGS:
            await self._embed(send, asked)
            return
        self.asked.append(asked)
        script = self.scripts.popleft() if self.scripts else self.usual
        if script.status != HTTPStatus.OK:
            await _refuse(send, script.status, script.message, script.headers)
            return
        async with anyio.create_task_group() as tasks:

            async def answer() -> None:
                await _stream(send, script, asked)
                tasks.cancel_scope.cancel()

            tasks.start_soon(answer)
            while (await receive())["type"] != "http.disconnect":
                pass
            self.left += 1
            tasks.cancel_scope.cancel()

    async def _embed(self, send: Send, asked: dict[str, Any]) -> None:
        """Answer with a vector of each text: its words, counted by what they mean."""
        self.embedded.append(asked)
        if self.embedding_gate is not None:
            await self.embedding_gate.wait()
        data = [
            {"object": "embedding", "index": place, "embedding": vector_of(text)}
            for place, text in enumerate(asked["input"])
        ]
        tokens = sum(map(len, asked["input"])) // CHARACTERS_PER_TOKEN
        body = {"object": "list", "model": asked["model"], "data": data}
        body["usage"] = {"prompt_tokens": tokens, "total_tokens": tokens}
        head = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": orjson.dumps(body)})

    def _refusal(self, scope: dict[str, Any]) -> tuple[int, str] | None:
        given = dict(scope["headers"]).get(b"authorization", b"")
        if self.key is not None and not hmac.compare_digest(given, f"Bearer {self.key}".encode()):
            return 401, "Incorrect API key provided."
        if scope["method"] != "POST" or scope["path"] not in (COMPLETIONS, EMBEDDINGS):
            return 404, "There is nothing at this address."
        return None


def vector_of(text: str) -> list[float]:
    """Count the words of a text in places that their meanings share."""
    found = [0.0] * DIMENSIONS
    found[0] = 0.01  # no text is without a direction
    for word in re.findall(r"\w+", text.lower()):
        found[crc32(ALIKE.get(word, word).encode()) % DIMENSIONS] += 1.0
    return found


async def _refuse(
    send: Send, status: int, message: str, headers: Mapping[str, str] | None = None
) -> None:
    given = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    head = [(b"content-type", b"application/json"), *given]
    error = {"error": {"message": message, "type": "invalid_request_error", "code": None}}
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": orjson.dumps(error)})


async def _wait(send: Send, gate: anyio.Event) -> None:
    """Wait at a gate, and say now and then that the connection lives, as services do that have models queue."""
    while not gate.is_set():
        with anyio.move_on_after(COMMENT_SECONDS):
            await gate.wait()
            return
        await send({"type": "http.response.body", "body": b": waiting\n\n", "more_body": True})


async def _stream(send: Send, script: Script, asked: dict[str, Any]) -> None:
    async def tell(data: bytes) -> None:
        await send(
            {"type": "http.response.body", "body": b"data: " + data + b"\n\n", "more_body": True}
        )

    head = [(b"content-type", b"text/event-stream; charset=utf-8")]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    wants_usage = (asked.get("stream_options") or {}).get("include_usage", False)
    deltas = list(_deltas(script, asked))
    prompt = script.prompt_tokens if script.prompt_tokens is not None else _prompt_tokens(asked)
    for number, delta in enumerate(deltas):
        if number in script.gates:
            await _wait(send, script.gates[number])
        if script.cut_after == number:
            return
        if script.error_after == number:
            await tell(orjson.dumps({"error": {"message": script.message, "code": 500}}))
            return
        await anyio.sleep(script.seconds_between)
        chunk = _chunk(delta)
        if script.usage == "every":
            chunk["usage"] = _usage(prompt, deltas[: number + 1])
        await tell(orjson.dumps(chunk))
    await tell(orjson.dumps(_chunk({}, "tool_calls" if script.calls else "stop")))
    if wants_usage and script.usage != "never":
        await tell(orjson.dumps({**_chunk({}), "choices": [], "usage": _usage(prompt, deltas)}))
    await tell(b"[DONE]")
    await send({"type": "http.response.body", "body": b""})


def _deltas(script: Script, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    said = script.said if script.said is not None else _answer(asked)
    deltas: list[dict[str, Any]] = [{"reasoning_content": text} for text in script.thought]
    deltas += [{"content": text} for text in said]
    deltas += [_call(place, *one) for place, one in enumerate(script.calls)]
    limit = asked.get("max_completion_tokens", asked.get("max_tokens"))
    return iter(deltas[:limit] if script.heeds_limit and limit else deltas)


def _call(place: int, name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    call = {"index": place, "id": f"call_{place}", "type": "function", "function": function}
    return {"tool_calls": [call]}


def _answer(asked: dict[str, Any]) -> tuple[str, ...]:
    question = str(asked["messages"][-1]["content"]).strip()
    texts = _texts(question)
    if texts is not None:
        return texts
    known = next((m["content"] for m in asked["messages"] if m["role"] == "system"), "")
    text = (
        f"You asked: {question} I am a stand-in for a model, so I can only say that I was told "
        f"{len(known.splitlines())} lines about your store."
    )
    return tuple(f"{word} " for word in text.split())


def _texts(question: str) -> tuple[str, ...] | None:
    """Write what JSON asks for in its `texts`, each paragraph as it is drafted with a word of our own; None: no such."""
    try:
        drafts = orjson.loads(question)["texts"]
    except (orjson.JSONDecodeError, TypeError, KeyError):
        return None
    written = {
        name: [[f"{said} That is how we do it." for said in part["paragraphs"]] for part in parts]
        for name, parts in drafts.items()
    }
    text = orjson.dumps({"texts": written}).decode()
    return tuple(text[start : start + 40] for start in range(0, len(text), 40))


def _chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {
        "id": "chatcmpl-sandbox",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": NAME,
        "choices": [choice],
    }


def _prompt_tokens(asked: dict[str, Any]) -> int:
    return sum(
        len(one["content"] or "") // CHARACTERS_PER_TOKEN + TOKENS_PER_MESSAGE
        for one in asked["messages"]
    )


def _usage(prompt: int, deltas: list[dict[str, Any]]) -> dict[str, Any]:
    thought = sum("reasoning_content" in delta for delta in deltas)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": len(deltas),
        "total_tokens": prompt + len(deltas),
        "completion_tokens_details": {"reasoning_tokens": thought},
    }
