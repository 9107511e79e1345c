"""The embedding model: texts in, vectors out, at the same OpenAI-compatible service as the chat's."""

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, TypeGuard

import httpx
import structlog

from tolsey.actors.bodies import lenient
from tolsey.http.clients.certificates import trusted_certificates
from tolsey.http.clients.counted import CountedClient
from tolsey.http.clients.model import ModelFailed, refused

TIMEOUT_SECONDS: Final = 30.0
MOST_DIMENSIONS: Final = 16_000
"""Of a vector in PostgreSQL."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors in the order of their texts, and how many tokens those were; None: it was not told."""

    vectors: Sequence[Sequence[float]]
    tokens: int | None


class EmbeddingModel:
    """The model `EMBEDDING_MODEL` at `LLM_BASE_URL`; every failure is a ModelFailed."""

    def __init__(self, base_url: str, name: str, key: str | None = None) -> None:
        self.name = name
        self._url = f"{base_url}/embeddings"
        self._client = CountedClient(
            "model",
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx.Timeout(TIMEOUT_SECONDS),
            verify=trusted_certificates(),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Make a vector of each text."""
        asked = {"model": self.name, "input": list(texts), "encoding_format": "float"}
        try:
            response = await self._client.post(self._url, json=asked)
            if response.status_code != HTTPStatus.OK:
                raise refused(response)
            return _read(response.json(), len(texts))
        except (httpx.HTTPError, ValueError) as error:
            log.warning("model.failed", fault=type(error).__name__)
            raise ModelFailed(
                "model_unreachable", "The model is unreachable. Try again in a minute."
            ) from error


def _read(body: Any, count: int) -> Embedded:
    """Read vectors by their places; one that is missing or no vector makes the answer none."""
    told = lenient(body)
    data = told.get("data")
    found: dict[int, Sequence[float]] = {}
    for place, one in enumerate(data if isinstance(data, list) else ()):
        item = lenient(one)
        index, vector = item.get("index", place), item.get("embedding")
        if type(index) is int and _is_vector(vector):
            found[index] = vector
    if sorted(found) != list(range(count)) or len({len(one) for one in found.values()}) > 1:
        raise ValueError("no vector for each text")
    tokens = lenient(told.get("usage")).get("prompt_tokens")
    return Embedded([found[n] for n in range(count)], tokens if type(tokens) is int else None)


def _is_vector(vector: Any) -> TypeGuard[Sequence[float]]:
    return (
        isinstance(vector, list)
        and 0 < len(vector) <= MOST_DIMENSIONS
        and all(isinstance(one, float | int) and not isinstance(one, bool) for one in vector)
    )
