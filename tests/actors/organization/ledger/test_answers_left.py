"""Answers of the chat are looked after until they end, whoever made them."""

from datetime import timedelta

import pytest

from tests.actors.organization.books import AT, DOLLAR, Ledger
from tolsey.actors.organization.ledger import answers
from tolsey.actors.organization.ledger.answers import LOOK, MOST_WITHOUT_HOLD, CheckAnswer
from tolsey.actors.organization.ledger.messages import ExtendHold, GrantCredits, HoldCredits
from tolsey.runtime.decision import Perform, Tell

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


def test_an_answer_that_is_made_is_looked_after_again(ledger: Ledger) -> None:
    first = answers.check(ledger.state, CheckAnswer(generation_id="gen_1", at=AT), is_left=True)
    (again,) = first.effects
    assert first.state is ledger.state
    assert isinstance(again, Tell)
    assert again.message == CheckAnswer(generation_id="gen_1", at=AT + LOOK, lease_until=LATER)
    assert again.due_at == AT + LOOK
    kept = answers.check(
        ledger.state, CheckAnswer(generation_id="gen_1", at=AT, lease_until=LATER), is_left=False
    )
    assert kept.state is ledger.state


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
    (call,) = ended.effects
    assert isinstance(call, Perform)
    assert call.call == answers.EndAnswer(ledger.state.organization_id, "gen_1", message.at)


def test_who_settled_an_answer_has_a_minute_to_write_its_end_down(ledger: Ledger) -> None:
    looks, message = 0, CheckAnswer(generation_id="gen_2", at=AT)
    while True:
        (effect,) = answers.check(ledger.state, message, is_left=False).effects
        if isinstance(effect, Perform):
            break
        assert isinstance(effect.message, CheckAnswer)
        message, looks = effect.message, looks + 1
    assert (looks, message.at - AT) == (MOST_WITHOUT_HOLD, timedelta(minutes=1))
