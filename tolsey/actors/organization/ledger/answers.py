"""Answers of the chat whose process is gone: what was held for them is settled, and their end written down.

While an answer is made its organization looks after it again and again, by messages with a due time.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, Final

from tolsey.actors.organization.ledger import holds
from tolsey.actors.organization.ledger.messages import SettleHold
from tolsey.actors.organization.messages import organization
from tolsey.actors.organization.state import OrganizationState
from tolsey.runtime.decision import Decision, Perform, Tell
from tolsey.runtime.messages import Call, LaneName, Message

LOOK: Final = timedelta(seconds=10)
MOST_WITHOUT_HOLD: Final = 6
"""So many looks, a minute, who makes an answer has to write its end down when its hold has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckAnswer(Message[None]):
    """It is time to look whether an answer is still being made.

    `lease_until` is what its hold's was at the last look, `without_hold` how many looks found none.
    """

    generation_id: str
    at: datetime
    lease_until: datetime | None = None
    without_hold: int = 0


@dataclass(frozen=True, slots=True)
class EndAnswer(Call[None]):
    """Write down that an answer ended with its process, at the cost that its hold last reported."""

    lane: ClassVar[LaneName] = "short"
    deadline_seconds: ClassVar[float] = 30.0

    organization_id: str
    generation_id: str
    at: datetime


def first_look(organization_id: str, generation_id: str, at: datetime) -> Tell:
    """Have an answer that is about to begin looked after."""
    return _look(organization_id, CheckAnswer(generation_id=generation_id, at=at + LOOK))


def check(
    state: OrganizationState, message: CheckAnswer, is_left: bool | None
) -> Decision[OrganizationState, None]:
    """Settle the hold of an answer that nobody makes any more, or look again in a while.

    Its process beats no more (`is_left`) and has not written its cost down since the last look, or its
    lease is over: then what it last reported is its cost (rules/credits#holds). None: its end is
    written down.
    """
    if is_left is None:
        return Decision(state, None)
    hold = state.credits.holds.get(f"chat:{message.generation_id}")
    if hold is None:
        if message.without_hold >= MOST_WITHOUT_HOLD:
            return Decision(state, None, effects=(_end(state, message),))
        again = CheckAnswer(
            generation_id=message.generation_id,
            at=message.at + LOOK,
            without_hold=message.without_hold + 1,
        )
        return Decision(state, None, effects=(_look(state.organization_id, again),))
    is_silent = is_left and hold.lease_until == message.lease_until
    if hold.lease_until > message.at and not is_silent:
        due_at = min(message.at + LOOK, hold.lease_until)
        again = CheckAnswer(
            generation_id=message.generation_id, at=due_at, lease_until=hold.lease_until
        )
        return Decision(state, None, effects=(_look(state.organization_id, again),))
    settled = holds.settle(state, SettleHold(hold.id, hold.used, message.at))
    effects = (_end(state, message),)
    return Decision(settled.state, None, records=settled.records, effects=effects)


def _look(organization_id: str, message: CheckAnswer) -> Tell:
    key = f"answer:{message.generation_id}"
    return Tell(organization(organization_id), message, key=key, due_at=message.at)


def _end(state: OrganizationState, message: CheckAnswer) -> Perform:
    call = EndAnswer(state.organization_id, message.generation_id, message.at)
    return Perform(call, key=f"end_answer:{message.generation_id}")
