"""Texts of launches, written by the language model and paid out of the organization's credits (rules/launch#texts)."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, Final

import orjson
import structlog

from tolsey.actors.chat import Meter, input_tokens
from tolsey.actors.refusals import PaymentRequired
from tolsey.actors.store.launch.messages import TextsWritten, WriteLaunchTexts
from tolsey.actors.store.launch.texts.drafting import TextBrief
from tolsey.actors.store.launch.texts.standard_texts import Text
from tolsey.http.chat.credit_meter import CreditMeter
from tolsey.http.chat.terms import Terms
from tolsey.http.clients.model import ChatModel
from tolsey.runtime.ids import new_id
from tolsey.runtime.messages import ActorId, Call, Message

LEASE: Final = timedelta(minutes=15)
"""A hold whose texts were lost with their process ends at nothing after so long."""
UNPAID: Final = "insufficient_credits"
UNUSABLE: Final = "model_unusable"

log = structlog.get_logger()


class LaunchWriter:
    """Writes texts of launches: each holds the most that it can cost, and tells what it did cost."""

    def __init__(
        self,
        model: ChatModel,
        terms: Terms,
        *,
        ask: Callable[[ActorId, Message[Any]], Awaitable[Any]],
        clock: Callable[[], datetime],
    ) -> None:
        self._model = model
        self._terms = terms
        self._ask = ask
        self._clock = clock

    def handlers(self) -> dict[type[Call[Any]], Any]:
        """Say which method answers which call."""
        return {WriteLaunchTexts: self.write}

    async def write(self, call: WriteLaunchTexts) -> TextsWritten:
        """Have texts written; the templates stand in for what is not paid for, or not usable.

        Raises ModelFailed, which is tried again: nothing is charged for it.
        """
        brief = TextBrief.read(call.brief)
        messages = brief.messages()
        bound = input_tokens(one["content"] for one in messages)
        most = self._terms.most_output(brief.most_tokens, bound)
        hold_id = new_id("texts")
        credits = CreditMeter(
            hold_id,
            call.organization_id,
            amount=self._terms.prices.most(bound, most),
            lease=LEASE,
            ask=self._ask,
            clock=self._clock,
        )
        try:
            await credits.pin()
        except PaymentRequired:
            return self._told(call, because=UNPAID)
        meter = Meter(bound, most)
        try:
            answer = await self._answered(messages, most, meter)
        except BaseException:
            await credits.free()
            raise
        taken = brief.taken(answer)
        cost = min(self._terms.prices.cost(meter.usage), credits.held)
        log.info("launch.texts_written", store_id=call.store_id, taken=len(taken), cost=cost)
        because = None if taken else UNUSABLE
        return self._told(call, taken=taken, because=because, hold_id=hold_id, cost=cost)

    async def _answered(self, messages: list[dict[str, str]], most: int, meter: Meter) -> str:
        """Read the whole answer, counting what it uses."""
        said = list[str]()
        async with self._model.answer(messages, most) as parts:
            async for part in parts:
                meter.receive(part.text, part.reasoning)
                if part.usage is not None:
                    meter.report(part.usage)
                said.append(part.text)
        return "".join(said)

    def _told(
        self,
        call: WriteLaunchTexts,
        *,
        because: str | None,
        taken: dict[str, Text] | None = None,
        hold_id: str | None = None,
        cost: int = 0,
    ) -> TextsWritten:
        return TextsWritten(
            of=call.of,
            digest=call.digest,
            texts=orjson.dumps(taken or {}).decode(),
            because=because,
            hold_id=hold_id,
            cost=cost,
            at=self._clock(),
        )
