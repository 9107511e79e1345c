"""What a look at the shop says of the milestones that people do."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from graphql import parse, validate

from tests.actors.store.launch.test_graph import BUILT, NOON, launch
from tolsey.actors.store.launch import probing
from tolsey.actors.store.launch.executors import shipping
from tolsey.actors.store.launch.playbook import PLAYBOOK
from tolsey.http.clients.commerce import uploads
from tolsey.http.clients.commerce.edits import setup
from tolsey.sandbox.commerce.query.schema import published_schema
from tolsey.storage.records.commerce.launches import MilestoneState

CASES = orjson.loads(Path(__file__).with_name("probe_cases.json").read_bytes())
PAID = {"shop": {"plan": {"publicDisplayName": "Basic", "partnerDevelopment": False}}}
TRIAL = {"shop": {"plan": {"publicDisplayName": "Development", "partnerDevelopment": True}}}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_look_approves_and_hints_as_the_golden_cases_say(case: dict[str, Any]) -> None:
    assert sorted(probing.detected(case["probe"])) == sorted(case["approved"])
    assert sorted(probing.hinted(case["probe"])) == sorted(case["hinted"])


def judged(probe: dict[str, Any], **states: str) -> dict[str, MilestoneState]:
    found = probing.judged(launch(**states), orjson.dumps(probe).decode(), BUILT, NOON)
    return {id: one.state for id, one in found.milestones.items()}


def test_what_may_be_found_before_its_turn_is_approved_at_once() -> None:
    assert judged(PAID)["foundation.plan"] == MilestoneState.APPROVED
    assert judged(TRIAL)["foundation.plan"] == MilestoneState.PENDING


def test_what_comes_after_others_is_not_approved_before_them() -> None:
    off = {"onlineStore": {"passwordProtection": {"enabled": False}}}
    assert judged(off)["launch.unlock"] == MilestoneState.PENDING
    after = judged(off, launch__preflight="succeeded")
    assert after["launch.unlock"] == MilestoneState.APPROVED


def test_after_an_undo_nothing_is_detected_until_the_condition_was_false_once() -> None:
    made = launch()
    held = replace(made.milestones["foundation.plan"], is_held=True)
    made = made.with_milestone(held)
    for probe, state in (
        (PAID, MilestoneState.PENDING),
        (TRIAL, MilestoneState.PENDING),
        (PAID, MilestoneState.APPROVED),
    ):
        made = probing.judged(made, orjson.dumps(probe).decode(), BUILT, NOON)
        assert made.milestones["foundation.plan"].state == state


def test_a_hint_approves_nothing() -> None:
    made = launch()
    probe = {"shop": {"shopAddress": {"address1": "1 St", "city": "Berlin", "countryCodeV2": "DE"}}}
    lines = {**probe, "internal": {"preflight": {"taxLines": 1}}}
    assert list(probing.hinted(lines)) == ["operations.tax"]
    after = probing.judged(made, orjson.dumps(probe).decode(), BUILT, NOON)
    assert after.milestones["operations.tax"].state == MilestoneState.PENDING


def test_what_the_grant_does_not_cover_is_not_asked_for() -> None:
    asked = probing.variables("launch_1", datetime(2026, 7, 1, tzinfo=UTC), ["orders", "themes"])
    assert (asked["orders"], asked["themes"], asked["products"]) == (False, False, True)
    assert asked["ours"] == "tag:launch_1 status:active"
    assert asked["testOrders"].endswith("created_at:>='2026-07-01T00:00:00Z'")


def test_an_order_counts_from_when_the_last_of_what_comes_before_it_was_done() -> None:
    made = launch()
    assert probing.orders_since(made, BUILT) is None
    done = [
        replace(
            made.milestones[id],
            state=MilestoneState.APPROVED,
            finished_at=NOON + timedelta(hours=n),
        )
        for n, id in enumerate(PLAYBOOK.milestones["launch.test_order"].depends_on)
    ]
    assert probing.orders_since(made.with_milestone(*done), BUILT) == NOON + timedelta(hours=4)


DOCUMENTS = {
    **PLAYBOOK.documents,
    **{name: text for name, text in vars(setup).items() if "query " in str(text)[:20]},
    **{name: text for name, text in vars(setup).items() if "mutation " in str(text)[:20]},
    "stage": uploads.STAGE,
    "profile": shipping.FIND_PROFILE,
}


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_every_document_of_a_launch_is_one_of_the_published_schema(name: str) -> None:
    schema = published_schema()
    if schema is None:
        pytest.skip("the published schema is not beside this checkout")
    assert validate(schema, parse(DOCUMENTS[name])) == []
