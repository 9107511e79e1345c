"""Each function of a kind's table takes the message it stands for and answers what that promises."""

from collections.abc import Callable
from functools import partial
from types import UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

import pytest

from tests.runtime.counter import Add, Counter, CounterState
from tolsey.actors.job.actor import JobActor
from tolsey.actors.listing.actor import ListingActor
from tolsey.actors.organization.actor import OrganizationActor
from tolsey.actors.store.actor import StoreActor
from tolsey.actors.storefront.actor import StorefrontActor
from tolsey.runtime.actor import Actor, Turn, on
from tolsey.runtime.codec import reply_type
from tolsey.runtime.decision import Decision

KINDS: list[Callable[..., Actor[Any]]] = [
    StoreActor,
    partial(ListingActor, nda_writer=cast("Any", None)),
    OrganizationActor,
    JobActor,
    StorefrontActor,
]
TURNS = [turn for kind in KINDS for turn in kind(None).turns.values()]


def parts(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)


@pytest.mark.parametrize("turn", TURNS, ids=lambda turn: turn.name)
def test_a_turn_answers_what_its_message_promises(turn: Turn[Any]) -> None:
    if turn.method.__name__ == "<lambda>":
        pytest.skip("mypy alone sees what a function without a name answers")
    hints = get_type_hints(turn.method)
    replies = parts(get_args(hints.pop("return"))[1])
    assert set(replies) <= set(parts(reply_type(turn.message)))
    assert turn.message in parts(list(hints.values())[1])


def test_a_message_that_is_answered_twice_stops_the_start() -> None:
    def add(state: CounterState, message: Add) -> Decision[CounterState, int]:
        return Decision(state, message.amount)

    class Twice(Counter):
        decides = (on(Add, add),)

    with pytest.raises(TypeError, match="counter answers Add twice"):
        Twice(None)
