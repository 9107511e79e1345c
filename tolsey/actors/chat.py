"""What an answer of the chat model costs, before, while and after it is made.

Amounts are in whole micro-USD and prices for a million tokens, rounded up once, so that what was held
before always covers what it was held for (rules/chat#paying).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

MILLION: Final = 1_000_000
BYTES_PER_TOKEN: Final = 3
TOKENS_PER_MESSAGE: Final = 8
OUTPUT_TOKENS: Final = 8_192
"""The most that a plan lets one answer have."""
MOST_TOKENS: Final = 100 * MILLION
"""A model that says it used more than this says nothing we can believe."""


def tokens(text: str) -> int:
    """Bound what a text comes to, from its size."""
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def input_tokens(texts: Iterable[str]) -> int:
    """Bound what the messages of a request come to."""
    return sum(tokens(text) + TOKENS_PER_MESSAGE for text in texts)


@dataclass(frozen=True, slots=True)
class Usage:
    """What an answer used; `reasoning_tokens` are among `output_tokens`."""

    input_tokens: int
    output_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What a million tokens cost, and the percentage that comes on top."""

    input: int
    output: int
    reasoning: int
    margin_percent: int = 0

    def cost(self, used: Usage) -> int:
        """Tell what was used up."""
        spoken = used.output_tokens - used.reasoning_tokens
        return self._priced(
            used.input_tokens * self.input
            + spoken * self.output
            + used.reasoning_tokens * self.reasoning
        )

    def most(self, input_tokens: int, output_tokens: int) -> int:
        """Tell what an answer costs at most, whatever it is made of; never nothing."""
        dearest = output_tokens * max(self.output, self.reasoning)
        return max(1, self._priced(input_tokens * self.input + dearest))

    def affordable(self, input_tokens: int, available: int, most: int) -> int:
        """Tell how many output tokens, up to `most`, the credits cover after the input."""
        low, high = 0, most
        while low < high:
            middle = (low + high + 1) // 2
            if self.most(input_tokens, middle) <= available:
                low = middle
            else:
                high = middle - 1
        return low

    def _priced(self, at_cost: int) -> int:
        return -(-at_cost * (100 + self.margin_percent) // (100 * MILLION))


class Meter:
    """Counts an answer while it is made: exact as far as the model told, estimated from there on."""

    __slots__ = (
        "_before",
        "_bytes",
        "_most_input",
        "_most_output",
        "_reasoned",
        "_reported",
        "_said",
        "_was_estimated",
        "estimated",
    )

    def __init__(self, input_tokens: int, most_output_tokens: int) -> None:
        self._before, self._was_estimated = Usage(0), False
        self._begin(input_tokens, most_output_tokens)

    def go_on(self, input_tokens: int, most_output_tokens: int) -> None:
        """Count one more request of the same answer, beside what the former ones used."""
        self._before, self._was_estimated = self.usage, self.estimated
        self._begin(input_tokens, most_output_tokens)

    def _begin(self, input_tokens: int, most_output_tokens: int) -> None:
        self._reported = Usage(input_tokens)
        self._most_input = input_tokens * BYTES_PER_TOKEN  # no token is less than a byte
        self._most_output = most_output_tokens
        self._said = self._reasoned = self._bytes = 0
        self.estimated = True

    @property
    def usage(self) -> Usage:
        """What was used so far."""
        said = -(-self._said // BYTES_PER_TOKEN)
        reasoned = -(-self._reasoned // BYTES_PER_TOKEN)
        before = self._before
        return Usage(
            before.input_tokens + self._reported.input_tokens,
            before.output_tokens + self._reported.output_tokens + said + reasoned,
            before.reasoning_tokens + self._reported.reasoning_tokens + reasoned,
        )

    def receive(self, text: str, reasoning: str = "") -> None:
        """Count what came."""
        size, thought = len(text.encode()), len(reasoning.encode())
        self._said += size
        self._reasoned += thought
        self._bytes += size + thought
        self.estimated = self.estimated or bool(text or reasoning)

    def report(self, usage: Usage) -> None:
        """Believe the model, unless it takes back what it told, or tells what cannot be.

        It can neither have read more tokens than there were bytes, nor have made more than it was
        allowed and than came; thoughts that are not sent count within the allowance.
        """
        most_output = max(self._most_output, self._bytes)
        possible = usage.input_tokens <= self._most_input and usage.output_tokens <= most_output
        if possible and usage.output_tokens >= self._reported.output_tokens:
            self._reported = usage
            self._said = self._reasoned = 0
            self.estimated = self._was_estimated
