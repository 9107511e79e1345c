"""Answers of the chat are looked after until they end, whoever made them."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.actors.organization.books import AT, DOLLAR, Ledger
from tolsey.actors.organization.ledger import answers, holds
from tolsey.actors.organization.ledger.answers import (
    LOOK,
    MOST_WITHOUT_HOLD,
    CheckAnswer,
    EndAnswer,
)
from tolsey.actors.organization.ledger.messages import (
    ExtendHold,
    GrantCredits,
    HoldCredits,
    SettleHold,
)
from tolsey.actors.organization.messages import organization
from tolsey.runtime.decision import Decision, Perform, Tell

LATER = AT + timedelta(hours=1)


@pytest.fixture
def ledger() -> Ledger:
    rich = Ledger()
    rich.take(
        GrantCredits(
            key="g",
            kind="purchase",
            amount=10 * DOLLAR,
            at=AT,
            expires_at=AT + timedelta(days=365),
            reference="pi_1",
        )
    )
    rich.take(HoldCredits(hold_id="chat:gen_1", amount=6 * DOLLAR, at=AT, lease_until=LATER))
    rich.take(ExtendHold(hold_id="chat:gen_1", amount=0, at=AT, lease_until=LATER, used=2 * DOLLAR))
    return rich


def look(generation_id: str, at: datetime, **known: Any) -> Tell:
    """Write the look at an answer that is due at a moment."""
    message = CheckAnswer(generation_id=generation_id, at=at, **known)
    return Tell(organization("org_1"), message, key=f"answer:{generation_id}", due_at=at)


def end(generation_id: str, at: datetime) -> Perform:
    """Write the call that an answer ends by."""
    return Perform(
        EndAnswer("org_1", generation_id, at),
        key=f"end_answer:{generation_id}",
    )


def test_an_answer_is_looked_after_once_it_began() -> None:
    assert answers.first_look("org_1", "gen_1", AT) == look("gen_1", AT + LOOK)


@pytest.mark.parametrize(
    ("message", "is_left", "next_at"),
    [
        (CheckAnswer(generation_id="gen_1", at=AT), True, AT + LOOK),
        (CheckAnswer(generation_id="gen_1", at=AT, lease_until=LATER), False, AT + LOOK),
        (CheckAnswer(generation_id="gen_1", at=LATER - LOOK / 2), True, LATER),
    ],
    ids=["it may have gone on since", "its process beats", "its lease is over sooner"],
)
def test_an_answer_that_is_made_is_looked_after_again(
    ledger: Ledger, message: CheckAnswer, next_at: datetime, *, is_left: bool
) -> None:
    again = (look("gen_1", next_at, lease_until=LATER),)
    assert answers.check(ledger.state, message, is_left=is_left) == Decision(
        ledger.state, None, effects=again
    )


def test_an_answer_whose_end_is_written_down_is_let_be(ledger: Ledger) -> None:
    message = CheckAnswer(generation_id="gen_1", at=LATER, lease_until=LATER)
    assert answers.check(ledger.state, message, is_left=None) == Decision(ledger.state, None)


@pytest.mark.parametrize(
    ("message", "is_left"),
    [
        (CheckAnswer(generation_id="gen_1", at=AT + LOOK, lease_until=LATER), True),
        (CheckAnswer(generation_id="gen_1", at=LATER), False),
    ],
    ids=["its process is gone", "its lease is over"],
)
def test_an_answer_that_nobody_makes_is_settled_at_its_last_cost(
    ledger: Ledger, message: CheckAnswer, *, is_left: bool
) -> None:
    ended = answers.check(ledger.state, message, is_left=is_left)
    assert ended.state.credits.holds == {}
    assert ended.state.credits.standing.balance == 8 * DOLLAR
    settled = holds.settle(ledger.state, SettleHold("chat:gen_1", 2 * DOLLAR, message.at))
    effects = (end("gen_1", message.at),)
    assert ended == Decision(settled.state, None, records=settled.records, effects=effects)


def test_who_settled_an_answer_has_a_minute_to_write_its_end_down(ledger: Ledger) -> None:
    at = AT
    for looks in range(MOST_WITHOUT_HOLD):
        message = CheckAnswer(generation_id="gen_2", at=at, without_hold=looks)
        at += LOOK
        again = (look("gen_2", at, without_hold=looks + 1),)
        assert answers.check(ledger.state, message, is_left=False) == Decision(
            ledger.state, None, effects=again
        )
    message = CheckAnswer(generation_id="gen_2", at=at, without_hold=MOST_WITHOUT_HOLD)
    assert at - AT == timedelta(minutes=1)
    assert answers.check(ledger.state, message, is_left=False) == Decision(
        ledger.state, None, effects=(end("gen_2", at),)
    )
