"""What answers cost and how long they may be, and what each is made with."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol, Self

from tolsey.actors.chat import OUTPUT_TOKENS, Prices
from tolsey.http.clients.model import ChatModel
from tolsey.runtime.decision import Tell
from tolsey.runtime.messages import ActorId, Message
from tolsey.settings import Settings
from tolsey.storage.database import Database


@dataclass(frozen=True, slots=True)
class Terms:
    """What answers cost and how long they may be."""

    prices: Prices
    context_tokens: int
    output_tokens: int
    lease: timedelta
    checkpoint_seconds: float

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Read them from the settings; thoughts cost what words do unless they have a price."""
        output = settings.llm_output_micro_per_million
        reasoning = settings.llm_reasoning_micro_per_million
        return cls(
            Prices(
                input=settings.llm_input_micro_per_million,
                output=output,
                reasoning=output if reasoning is None else reasoning,
                margin_percent=settings.llm_margin_percent,
            ),
            settings.llm_context_tokens,
            settings.llm_output_tokens,
            timedelta(seconds=settings.chat_lease_seconds),
            settings.chat_checkpoint_seconds,
        )

    @staticmethod
    def of_embeddings(settings: Settings) -> Prices:
        """Read what embeddings cost, which have no output."""
        price = settings.embedding_micro_per_million
        return Prices(
            input=price, output=0, reasoning=0, margin_percent=settings.llm_margin_percent
        )

    def most_output(self, asked: int | None, input_tokens: int) -> int:
        """Tell how long an answer may be: what was asked for, within every limit."""
        room = max(0, self.context_tokens - input_tokens)
        return min(asked or OUTPUT_TOKENS, self.output_tokens, OUTPUT_TOKENS, room)


class Means(Protocol):
    """What an answer is made with."""

    model: ChatModel
    terms: Terms
    ask: Callable[[ActorId, Message[Any]], Awaitable[Any]]
    post: Callable[[Sequence[Tell]], Awaitable[int]]
    database: Database
    clock: Callable[[], datetime]
    process: str | None
