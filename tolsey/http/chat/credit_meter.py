"""What an answer is paid from: a hold on its organization's credits (rules/credits#holds)."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

import anyio
import structlog

from tolsey.actors.organization.ledger.messages import (
    ExtendHold,
    HoldCredits,
    ReleaseHold,
    Settled,
    SettleHold,
)
from tolsey.actors.organization.messages import organization
from tolsey.actors.refusals import Conflict, PaymentRequired, Refusal
from tolsey.runtime.errors import Duplicate, RuntimeFault
from tolsey.runtime.messages import ActorId, Message
from tolsey.storage.errors import StorageError

Reply = TypeVar("Reply")
Ask = Callable[[ActorId, Message[Any]], Awaitable[Any]]

AWAY: Final = (RuntimeFault, StorageError)
"""The ledger cannot be asked now; what was asked may have happened."""
PAUSES: Final = (0.1, 0.5, 2.0, 5.0, 7.0)
"""Between the tries to settle: long enough for another process to take over the organization.

Then the lease ends what could not be.
"""

log = structlog.get_logger()


class CreditMeter:
    """Holds credits, more of them as they are needed, and pays out of them once."""

    def __init__(
        self,
        hold_id: str,
        organization_id: str,
        *,
        amount: int,
        lease: timedelta,
        ask: Ask,
        clock: Callable[[], datetime],
    ) -> None:
        self.held = amount
        self._hold_id = hold_id
        self._organization = organization(organization_id)
        self._lease = lease
        self._ask_actor = ask
        self._clock = clock
        self._lease_until = clock() + lease

    @property
    def is_lapsed(self) -> bool:
        """Whether the hold may have ended for want of a word from here."""
        return self._clock() >= self._lease_until

    async def pin(self) -> None:
        """Hold what was planned. Raises PaymentRequired when it is not there."""
        try:
            await self._ask(
                HoldCredits(
                    hold_id=self._hold_id,
                    amount=self.held,
                    at=self._clock(),
                    lease_until=self._lease_until,
                )
            )
        except AWAY:
            await self.free()
            raise

    async def free(self) -> None:
        """Let go of a hold that may have been taken; if that fails too, its lease ends it."""
        try:
            await self._ask(ReleaseHold(self._hold_id, self._clock()))
        except (Refusal, *AWAY):
            log.warning("chat.hold_left", hold_id=self._hold_id)

    async def checkpoint(self, used: int, more: int = 0) -> None:
        """Lengthen the lease, leave the cost so far, at which a crash settles, and hold more."""
        at = self._clock()
        until = at + self._lease
        await self._ask(
            ExtendHold(hold_id=self._hold_id, amount=more, at=at, lease_until=until, used=used)
        )
        self.held += more
        self._lease_until = until

    async def extend(self, used: int, step: int) -> bool:
        """Hold a step more, or as much as there is; False when that does not cover what is used."""
        missing = used - self.held
        wanted = max(missing, step)
        while wanted >= missing:
            try:
                await self.checkpoint(used, wanted)
            except PaymentRequired as refusal:
                wanted = min(wanted - 1, available(refusal))
            else:
                return True
        return False

    async def settle(self, cost: int) -> Settled | None:
        """Pay, after holding what can still be had; None when the lease ended it, or will."""
        for pause in (*PAUSES, None):
            try:
                if cost > self.held:
                    await self._reach(cost)
                return await self._ask(SettleHold(self._hold_id, cost, self._clock()))
            except (Conflict, Duplicate):
                break  # ended by its lease, or by a try of ours whose answer was lost
            except AWAY as error:
                log.warning("chat.settle_failed", fault=type(error).__name__)
                if pause is not None:
                    await anyio.sleep(pause)
        log.warning("chat.unsettled", hold_id=self._hold_id)
        return None

    async def _reach(self, cost: int) -> None:
        """Hold what is missing, or else what is there: nobody is charged more than they have."""
        try:
            await self.checkpoint(cost, cost - self.held)
        except PaymentRequired as refusal:
            there = available(refusal)
            if there > 0:
                with suppress(PaymentRequired):  # someone else can have it in between
                    await self.checkpoint(cost, there)

    async def _ask(self, message: Message[Reply]) -> Reply:
        reply: Reply = await self._ask_actor(self._organization, message)
        return reply


def available(refusal: PaymentRequired) -> int:
    """Read from a refusal what there was."""
    return int(refusal.fields.get("available", 0))
