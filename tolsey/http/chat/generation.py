"""One answer of the model while it is made and paid for (rules/chat#paying).

It runs in a task of its own. Whoever asked may leave: that cancels the model's answer, never the
settlement.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import anyio
import anyio.lowlevel
import structlog

from tolsey.actors.chat import Meter, input_tokens
from tolsey.actors.organization.ledger.answers import first_look
from tolsey.actors.organization.ledger.messages import Settled
from tolsey.actors.refusals import Conflict, PaymentRequired, Refusal, Unavailable
from tolsey.http.chat.credit_meter import AWAY, CreditMeter, available
from tolsey.http.chat.requests import GatheredCalls, asked_by_model, sizes_of
from tolsey.http.chat.telling import CONTENT_TYPE, Telling
from tolsey.http.chat.terms import Means
from tolsey.http.chat.toolbox import ModelCall, Toolbox
from tolsey.http.clients.model import AnswerPart, ModelFailed
from tolsey.storage import idempotency
from tolsey.storage.chat import generations
from tolsey.storage.errors import StorageError
from tolsey.storage.records.chat import Ending
from tolsey.storage.records.chat import Generation as Row

EXTENSION_TOKENS: Final = 512
"""A hold that is used up grows by the price of so many output tokens."""
USAGE_EVERY_TOKENS: Final = 16
LONGEST_SECONDS: Final = 900.0
ROUNDS: Final = 6
"""So often a model may want tools used for one answer; then it is to answer with what it has."""
USES: Final = 8
"""So many tools are used for one request of the model's."""

log = structlog.get_logger()


class GenerationOutcome(StrEnum):
    """How an answer ended; all but `done` are reasons of an `aborted` event."""

    DONE = "done"
    BALANCE = "balance"
    LEFT = "left"
    MODEL_FAILED = "model_failed"
    STOPPING = "stopping"
    UNAVAILABLE = "unavailable"
    """The ledger could not be asked, or the hold had ended: nothing goes on unpaid."""
    CRASHED = "crashed"


@dataclass(frozen=True, slots=True)
class Order:
    """Who wants an answer, of at most how much; `key` is their Idempotency-Key.

    `claim` is the same in every attempt of one request, `id` is each attempt's own.
    """

    id: str
    organization_id: str
    store_id: str
    user_id: str
    claim: str
    input_tokens: int
    output_tokens: int
    key: str | None = None


class AnswerGeneration:
    """One answer: held for, streamed, and settled."""

    def __init__(
        self,
        means: Means,
        order: Order,
        messages: Sequence[Mapping[str, Any]],
        toolbox: Toolbox | None = None,
    ) -> None:
        self.order = order
        self.ended = anyio.Event()
        self._means = means
        self._messages = list(messages)
        self._toolbox = toolbox
        self._tools = toolbox.offered if toolbox else ()
        self._prices = means.terms.prices
        self._credits = CreditMeter(
            generations.hold_id(order.id),
            order.organization_id,
            amount=self._prices.most(order.input_tokens, order.output_tokens),
            lease=means.terms.lease,
            ask=means.ask,
            clock=means.clock,
        )
        self._telling = Telling(keeps=order.key is not None)
        self._meter = Meter(order.input_tokens, order.output_tokens)
        self._asked = False
        self._rounds = 0
        self._finish: str | None = None
        self._shown_tokens = 0
        self._outcome: GenerationOutcome | None = None
        self._refusal: Exception | None = None
        self._begun = anyio.Event()
        self._scope = anyio.CancelScope()

    async def begun(self) -> Telling:
        """Wait until the model answers; then what is told comes, or the refusal is raised."""
        await self._begun.wait()
        if self._refusal is not None:
            raise self._refusal
        return self._telling

    def refuse(self, why: Exception) -> None:
        """Answer that it is not made."""
        self._refusal = why
        self._begun.set()
        self._telling.end()

    def leave(self) -> None:
        """Nobody reads any more; what was made until now is settled."""
        self.break_off(GenerationOutcome.LEFT)
        self._telling.stop_reading()

    def break_off(self, outcome: GenerationOutcome) -> None:
        """Give up the rest of the answer."""
        self._outcome = self._outcome or outcome
        self._scope.cancel()

    async def run(self) -> None:
        """Bring the answer to its end, whatever comes between."""
        try:
            await self._pin()
            await self._make()
            await self._settle(self._outcome or GenerationOutcome.MODEL_FAILED)
        except Exception as error:  # noqa: BLE001 - the request raises it
            self.refuse(error)
        finally:
            self._begun.set()
            self._telling.end()

    @property
    def _cost(self) -> int:
        """What is owed so far: nothing before the model was asked, or when it never answered."""
        if not self._asked or self._refusal is not None:
            return 0
        return self._prices.cost(self._meter.usage)

    async def _pin(self) -> None:
        """Claim the request, then hold the most its answer can cost."""
        order = self.order
        means = self._means
        row = Row(
            id=order.id,
            organization_id=order.organization_id,
            store_id=order.store_id,
            user_id=order.user_id,
            claim=order.claim,
            model=means.model.name,
            created_at=means.clock(),
            process=means.process,
        )
        # First: whatever comes then, its organization looks whether it is still being made.
        await means.post([first_look(order.organization_id, order.id, means.clock())])
        if not await generations.begin(self._means.database, row):
            raise Conflict(
                "This key already belongs to an answer that is in progress or complete. Use a"
                " new key.",
                code="duplicate",
            )
        try:
            await self._credits.pin()
        except PaymentRequired as refusal:
            await self._forget()
            raise self._unaffordable(available(refusal)) from refusal
        except (Refusal, *AWAY):
            await self._forget()
            raise

    async def _forget(self) -> None:
        """Leave no trace of what was refused: it can be asked again, and counts as never sent."""
        try:
            await generations.forget(self._means.database, self.order.id)
        except StorageError as error:
            log.warning("chat.not_forgotten", fault=type(error).__name__)

    def _unaffordable(self, available: int) -> PaymentRequired:
        """Say what the credits do cover (rules/chat#paying), and what to ask for then."""
        order = self.order
        tokens = self._prices.affordable(order.input_tokens, available, order.output_tokens)
        fields: dict[str, Any] = {"retry": {"maxOutputTokens": tokens}} if tokens else {}
        return PaymentRequired(
            "Your credit balance doesn't cover the longest possible answer. Buy credits or"
            " upgrade your plan.",
            code="insufficient_credits",
            required=self._credits.held,
            available=available,
            maxAffordableOutputTokens=tokens,
            **fields,
        )

    async def _make(self) -> None:
        try:
            with self._scope, anyio.move_on_after(LONGEST_SECONDS):
                async with anyio.create_task_group() as tasks:
                    await self._stream(tasks)
                    tasks.cancel_scope.cancel()
        except Exception as error:
            log.exception("chat.failed", generation_id=self.order.id)
            if not self._begun.is_set():
                self._refusal = error

    async def _stream(self, tasks: anyio.abc.TaskGroup) -> None:
        # Whoever left before the model was asked owes nothing.
        self._asked = not self._scope.cancel_called
        try:
            limit: int | None = self.order.output_tokens
            while limit is not None:
                wanted = await self._answer(tasks, limit)
                limit = await self._use(wanted) if wanted else None
            self._outcome = self._outcome or GenerationOutcome.DONE
        except ModelFailed as error:
            self._outcome = self._outcome or GenerationOutcome.MODEL_FAILED
            if not self._begun.is_set():
                self._refusal = _failed(error)

    async def _answer(self, tasks: anyio.abc.TaskGroup, limit: int) -> Sequence[ModelCall]:
        """Have the model answer, or say which tools it wants used first."""
        gathered = GatheredCalls()
        async with self._means.model.answer(self._messages, limit, self._tools) as parts:
            if not self._begun.is_set():
                self._begun.set()
                tasks.start_soon(self._stay)
            await self._show_usage()
            async for part in parts:
                gathered.take(part)
                await self._take(part)
        return gathered.calls[:USES] if self._tools else ()

    async def _use(self, wanted: Sequence[ModelCall]) -> int | None:
        """Use what the model wants used, and say how much it may answer to what came of it; None: nothing."""
        if self._toolbox is None:
            return None
        self._messages.append(asked_by_model(wanted))
        for call in wanted:
            used = await self._toolbox.use(call)
            self._messages.append({"role": "tool", "tool_call_id": call.id, "content": used.text})
            await self._tell("tool", name=call.name, title=used.title, isError=used.is_error)
            if used.plan is not None:
                await self._tell("plan", **used.plan.told)
        self._rounds += 1
        if self._rounds >= ROUNDS:
            self._tools = ()
        return await self._go_on()

    async def _go_on(self) -> int | None:
        """Hold what the next request of the model can cost; without credit or room the answer ends here."""
        given = input_tokens(sizes_of(self._messages, self._tools))
        most = self._means.terms.most_output(self.order.output_tokens, given)
        if most < 1:
            self._finish = "length"
            return None
        needed = self._cost + self._prices.most(given, most)
        try:
            if needed > self._credits.held:
                await self._credits.checkpoint(self._cost, needed - self._credits.held)
        except PaymentRequired:
            self.break_off(GenerationOutcome.BALANCE)
        except (Refusal, *AWAY):
            self.break_off(GenerationOutcome.UNAVAILABLE)
        await anyio.lowlevel.checkpoint()
        self._meter.go_on(given, most)
        return most

    async def _take(self, part: AnswerPart) -> None:
        """Pass on a part; what has come counts, whether or not there was credit for all of it."""
        asked = "".join(f"{one.name}{one.arguments}" for one in part.calls)
        self._meter.receive(part.text + asked, part.reasoning)
        if part.usage is not None:
            self._meter.report(part.usage)
        self._finish = part.finish or self._finish
        if part.text:
            await self._tell("delta", text=part.text)
        if not (part.text or part.reasoning or asked):
            return
        if self._meter.usage.output_tokens - self._shown_tokens >= USAGE_EVERY_TOKENS:
            await self._show_usage()
        if self._cost > self._credits.held:
            await self._extend()

    async def _extend(self) -> None:
        """Hold more out of what is available by now, or stop (rules/chat#paying)."""
        try:
            if await self._credits.extend(self._cost, self._prices.most(0, EXTENSION_TOKENS)):
                return
            self.break_off(GenerationOutcome.BALANCE)
        except (Refusal, *AWAY):
            self.break_off(GenerationOutcome.UNAVAILABLE)
        await anyio.lowlevel.checkpoint()

    async def _stay(self) -> None:
        """Checkpoint again and again; without any until the lease is over, the answer stops."""
        while True:
            try:
                await self._credits.checkpoint(self._cost)
            except Refusal:
                self.break_off(GenerationOutcome.UNAVAILABLE)
            except AWAY as error:
                log.warning("chat.checkpoint_failed", fault=type(error).__name__)
                if self._credits.is_lapsed:
                    self.break_off(GenerationOutcome.UNAVAILABLE)
            await anyio.sleep(self._means.terms.checkpoint_seconds)

    async def _settle(self, outcome: GenerationOutcome) -> None:
        """Pay for what was made, write the end down, and tell it."""
        cost = self._cost
        with anyio.CancelScope(shield=True):
            settled = await self._credits.settle(cost)
            spent = min(cost, self._credits.held) if settled is None else settled.charged
            if self._refusal is not None:
                await self._forget()
            elif settled is not None:
                await self._write_down(outcome, cost, spent)
        log.info(
            "chat.ended",
            generation_id=self.order.id,
            outcome=str(outcome),
            cost=cost,
            spent=spent,
        )
        if self._refusal is None:
            await self._tell_end(outcome, spent, settled)
            await self._keep()

    async def _write_down(self, outcome: GenerationOutcome, cost: int, spent: int) -> None:
        used, at = self._meter.usage, self._means.clock()
        ending = Ending(
            outcome=outcome,
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            estimated=self._meter.estimated,
            cost=cost,
            charged=spent,
        )
        try:
            await generations.end(self._means.database, self.order.id, ending, at)
        except StorageError as error:
            log.warning("chat.end_unwritten", fault=type(error).__name__)

    async def _tell_end(
        self, outcome: GenerationOutcome, spent: int, settled: Settled | None
    ) -> None:
        await self._show_usage()
        sums: dict[str, Any] = {
            "generationId": self.order.id,
            "spent": spent,
            "creditsRemaining": settled.standing.available if settled else None,
        }
        if outcome is GenerationOutcome.DONE:
            await self._tell("done", finishReason=self._finish, **self._used, **sums)
        else:
            await self._tell("aborted", reason=outcome, **sums)

    async def _show_usage(self) -> None:
        self._shown_tokens = self._meter.usage.output_tokens
        await self._tell("usage", held=self._credits.held, **self._used)

    @property
    def _used(self) -> dict[str, Any]:
        used = self._meter.usage
        return {
            "inputTokens": used.input_tokens,
            "outputTokens": used.output_tokens,
            "cost": self._cost,
            "estimated": self._meter.estimated,
        }

    async def _tell(self, name: str, /, **said: Any) -> None:
        if not await self._telling.tell(name, **said):
            self.leave()

    async def _keep(self) -> None:
        """Keep the answer for a repeat with the same Idempotency-Key."""
        if self.order.key is None:
            return
        body = b"".join(self._telling.kept).decode()
        answered = {"status": 200, "body": body, "contentType": CONTENT_TYPE}
        try:
            await idempotency.answer(
                self._means.database, self.order.user_id, self.order.key, answered
            )
        except StorageError as error:
            log.warning("chat.answer_unkept", fault=type(error).__name__)


def _failed(error: ModelFailed) -> Refusal:
    if error.retry_after is not None:
        return Unavailable(error.message, code=error.code, retryAfter=error.retry_after)
    return Refusal(error.message, status=502, code=error.code)
