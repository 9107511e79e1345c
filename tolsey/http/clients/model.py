"""The language model: an OpenAI-compatible chat service that streams its answers."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Protocol

import httpx
import orjson
import structlog

from tolsey.actors.bodies import Body, lenient
from tolsey.actors.chat import MOST_TOKENS, Usage
from tolsey.http.clients.certificates import trusted_certificates
from tolsey.http.clients.counted import CountedClient

CONNECT_SECONDS: Final = 10.0
SILENCE_SECONDS: Final = 60.0
"""A model that says nothing for so long is taken to be gone."""
CONNECTIONS: Final = 1_000
LONGEST_EVENT: Final = 1 << 20
"""No event of a stream is this many bytes: what goes on without an end is no stream of ours."""
SERVER_ERRORS: Final = 500
LONGEST_RETRY_AFTER: Final = 3_600

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """A part of an answer: text, thoughts that are not shown, what was used so far, why it ended."""

    text: str = ""
    reasoning: str = ""
    usage: Usage | None = None
    finish: str | None = None
    calls: tuple["CallPart", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPart:
    """A part of a tool's call: the first of a place has its id and name, each has some of its arguments."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


class ModelFailed(Exception):  # noqa: N818 - what the other service did
    """The model did not answer, or not to the end; `code` says how, in words safe to show."""

    def __init__(self, code: str, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retry_after = retry_after


class ChatModel(Protocol):
    """A model that answers a conversation."""

    @property
    def name(self) -> str:
        """Which model it is; 503 with the variable when none is set."""
        ...

    def answer(
        self,
        messages: Sequence[Mapping[str, Any]],
        output_tokens: int,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> AbstractAsyncContextManager[AsyncIterator[AnswerPart]]:
        """Begin an answer; leaving the block before its end gives the rest up."""
        ...


class StreamingModel:
    """The model at `LLM_BASE_URL`; every failure is a ModelFailed."""

    def __init__(
        self,
        base_url: str,
        name: str,
        key: str | None = None,
        *,
        limit_field: str = "max_tokens",
        silence_seconds: float = SILENCE_SECONDS,
    ) -> None:
        self.name = name
        self._limit_field = limit_field
        self._url = f"{base_url}/chat/completions"
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = CountedClient(
            "model",
            headers=headers,
            timeout=httpx.Timeout(CONNECT_SECONDS, read=silence_seconds),
            limits=httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=20),
            verify=trusted_certificates(),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    @asynccontextmanager
    async def answer(
        self,
        messages: Sequence[Mapping[str, Any]],
        output_tokens: int,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> AsyncGenerator[AsyncIterator[AnswerPart]]:
        """Begin an answer of at most so many tokens, which may want some of the tools used."""
        asked = {
            "model": self.name,
            "messages": list(messages),
            "stream": True,
            "stream_options": {"include_usage": True},
            self._limit_field: output_tokens,
            **({"tools": list(tools)} if tools else {}),
        }
        try:
            async with self._client.stream("POST", self._url, json=asked) as response:
                if response.status_code != HTTPStatus.OK:
                    raise refused(response)
                async with aclosing(_parts(response)) as parts:
                    yield parts
        except httpx.HTTPError as error:
            log.warning("model.failed", fault=type(error).__name__)
            raise ModelFailed(
                "model_unreachable", "The model is unreachable. Try again in a minute."
            ) from error


def refused(response: httpx.Response) -> ModelFailed:
    """Say why the model does not answer; its own words can hold our key, so they stay here."""
    log.warning("model.refused", status=response.status_code)
    if response.status_code == HTTPStatus.TOO_MANY_REQUESTS:
        given = response.headers.get("retry-after", "")
        seconds = min(int(given), LONGEST_RETRY_AFTER) if given.isdecimal() else 1
        return ModelFailed(
            "model_busy", "The model is overloaded. Try again in a minute.", max(1, seconds)
        )
    if response.status_code >= SERVER_ERRORS:
        return ModelFailed("model_unreachable", "The model is unreachable. Try again in a minute.")
    return ModelFailed("model_refused", "The model rejected the request. Shorten it and try again.")


async def _parts(response: httpx.Response) -> AsyncGenerator[AnswerPart]:
    ended = False
    async with aclosing(_events(response)) as events:
        async for event in events:
            if event == b"[DONE]":
                return
            part = read(event)
            ended = ended or part.finish is not None
            yield part
    if not ended:
        raise ModelFailed("model_cut", "The model's response was interrupted. Try again.")


async def _events(response: httpx.Response) -> AsyncGenerator[bytes]:
    """Read the data of server-sent events (HTML standard, section 9.2.6)."""
    waiting, data = b"", list[bytes]()
    async for chunk in response.aiter_bytes():
        *lines, waiting = (waiting + chunk).split(b"\n")
        for raw in lines:
            line = raw.removesuffix(b"\r")
            if not line and data:
                yield b"\n".join(data)
                data.clear()
            elif line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
        if len(waiting) + sum(map(len, data)) > LONGEST_EVENT:
            raise ModelFailed("model_failed", "The model's response is malformed. Try again.")
    if data:
        yield b"\n".join(data)


def read(event: bytes) -> AnswerPart:
    """Read one chunk of an answer."""
    try:
        chunk = orjson.loads(event)
    except orjson.JSONDecodeError as error:
        raise ModelFailed(
            "model_failed", "The model's response is malformed. Try again."
        ) from error
    if not isinstance(chunk, dict) or chunk.get("error"):
        raise ModelFailed("model_failed", "The model returned an error. Try again in a minute.")
    choices = chunk.get("choices")
    choice = lenient(choices[0] if isinstance(choices, list) and choices else None)
    delta = lenient(choice.get("delta"))
    return AnswerPart(
        _text(delta.get("content")),
        _text(delta.get("reasoning_content")) or _text(delta.get("reasoning")),
        _usage(lenient(chunk.get("usage"))),
        _text(choice.get("finish_reason")) or None,
        tuple(_calls(delta.get("tool_calls"))),
    )


def _calls(told: Any) -> Iterator[CallPart]:
    """Read the tools that an answer wants used, so far as a chunk tells."""
    for place, one in enumerate(told if isinstance(told, list) else ()):
        call = lenient(one)
        function, index = lenient(call.get("function")), call.get("index", place)
        yield CallPart(
            index=index if type(index) is int else place,
            id=_text(call.get("id")),
            name=_text(function.get("name")),
            arguments=_text(function.get("arguments")),
        )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _usage(spent: Body) -> Usage | None:
    """Read what was used; None for what no model can have used."""
    details = lenient(spent.get("completion_tokens_details"))
    used = [
        spent.get("prompt_tokens"),
        spent.get("completion_tokens"),
        details.get("reasoning_tokens") or 0,
    ]
    counts = [one for one in used if type(one) is int and 0 <= one <= MOST_TOKENS]
    if len(counts) < len(used):
        return None
    given, made, reasoned = counts
    return Usage(given, made, min(reasoned, made))
