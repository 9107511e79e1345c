"""Requests of the model that want tools used: gathered from the parts of a stream, and written back into it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from tolsey.http.chat.toolbox import ModelCall
from tolsey.http.clients.model import AnswerPart, ModelFailed

LONGEST_ARGUMENTS: Final = 64 * 1024
MOST_CALLS: Final = 64


class GatheredCalls:
    """The tools that one answer of the model wants used."""

    def __init__(self) -> None:
        self._found: dict[int, dict[str, str]] = {}

    def take(self, part: AnswerPart) -> None:
        """Take what a part tells of them."""
        for one in part.calls:
            kept = self._found.setdefault(one.index, {"id": "", "name": "", "arguments": ""})
            kept["id"] = kept["id"] or one.id
            kept["name"] = kept["name"] or one.name
            kept["arguments"] += one.arguments
            if len(kept["arguments"]) > LONGEST_ARGUMENTS or len(self._found) > MOST_CALLS:
                raise ModelFailed("model_failed", "The model's response is malformed. Try again.")

    @property
    def calls(self) -> Sequence[ModelCall]:
        """List them in their order; one without an id gets its place's."""
        return [
            ModelCall(id=one["id"] or f"call_{place}", name=one["name"], arguments=one["arguments"])
            for place, one in sorted(self._found.items())
        ]


def asked_by_model(wanted: Sequence[ModelCall]) -> Mapping[str, Any]:
    """Write the message in which the model wanted tools used."""
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": one.id,
                "type": "function",
                "function": {"name": one.name, "arguments": one.arguments or "{}"},
            }
            for one in wanted
        ],
    }


def sizes_of(
    messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Give the texts that a request of the model is made of, to bound what it costs."""
    for one in messages:
        content = one.get("content")
        yield content if isinstance(content, str) else orjson.dumps(one).decode()
    if tools:
        yield orjson.dumps(list(tools)).decode()
