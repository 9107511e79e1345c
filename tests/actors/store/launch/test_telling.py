"""A merchant may tell their store anew until products stand in the shop."""

from dataclasses import replace

import pytest

from tests.actors.store.launch.test_launching import EMPTY, NOON, begin
from tolsey.actors.refusals import Conflict
from tolsey.actors.store.launch import keeping, launching, telling
from tolsey.actors.store.launch.messages import ChangeLaunchSpec
from tolsey.actors.store.state import StoreState
from tolsey.storage.records.commerce.launches import MilestoneState

ANEW = ChangeLaunchSpec(user_id="usr_1", digest="e", modules=(), facts=(), at=NOON)
DONE = MilestoneState.SUCCEEDED


def standing(**states: tuple[MilestoneState, int]) -> StoreState:
    """Begin a launch whose milestones stand as named, each with its tries."""
    state = launching.begin(EMPTY, begin(), {}).state
    launch = keeping.launch_of(state)
    moved = [
        replace(launch.milestones[id.replace("__", ".")], state=one, attempts=tries)
        for id, (one, tries) in states.items()
    ]
    return replace(state, launch=launch.with_milestone(*moved))


def test_what_was_made_of_the_form_is_made_anew_and_an_approved_brand_stays() -> None:
    made = {"foundation__audit": (DONE, 1), "brand__kit": (DONE, 1)}
    after = keeping.launch_of(telling.change(standing(**made), ANEW, {}).state)
    assert (after.head.digest, after.milestones["brand.kit"].run) == ("e", 2)
    approved = standing(**made, brand__approve=(MilestoneState.APPROVED, 0))
    kept = keeping.launch_of(telling.change(approved, ANEW, {}).state)
    assert kept.milestones["brand.kit"].state == DONE


def test_the_same_form_once_more_changes_nothing() -> None:
    state = standing(foundation__audit=(DONE, 1), brand__kit=(DONE, 1))
    decided = telling.change(state, replace(ANEW, digest="d"), {})
    assert keeping.launch_of(decided.state).milestones["brand.kit"].run == 1


def test_a_form_that_named_no_product_can_be_mended_and_texts_are_written_by_the_new_one() -> None:
    state = standing(
        catalog__products=(MilestoneState.FAILED, 1),
        storefront__pages=(DONE, 1),
        legal__policies=(DONE, 1),
        legal__review=(MilestoneState.APPROVED, 0),
    )
    launch = keeping.launch_of(state)
    bare = replace(launch.milestones["catalog.products"], reason="missing_input")
    state = replace(state, launch=launch.with_milestone(bare))
    after = keeping.launch_of(telling.change(state, ANEW, {}).state).milestones
    assert (after["catalog.products"].run, after["storefront.pages"].run) == (2, 2)
    assert after["legal.policies"].run == 1, "a person approved these texts"


@pytest.mark.parametrize("tries", [0, 1])
def test_nothing_is_told_anew_once_products_were_sent(tries: int) -> None:
    stood = MilestoneState.QUEUED if tries else MilestoneState.RUNNING
    with pytest.raises(Conflict) as refused:
        telling.change(standing(catalog__products=(stood, tries)), ANEW, {})
    assert refused.value.code == "products_made"
