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
from tolsey.storage.records.commerce.launches import Launch, MilestoneState

CASES = orjson.loads(Path(__file__).with_name("probe_cases.json").read_bytes())
PAID = {"shop": {"plan": {"publicDisplayName": "Basic", "partnerDevelopment": False}}}
TRIAL = {"shop": {"plan": {"publicDisplayName": "Development", "partnerDevelopment": True}}}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_look_approves_and_hints_as_the_golden_cases_say(case: dict[str, Any]) -> None:
    assert sorted(probing.detected(case["probe"])) == sorted(case["approved"])
    assert sorted(probing.hinted(case["probe"])) == sorted(case["hinted"])


def judged(probe: dict[str, Any], **states: str) -> dict[str, MilestoneState]:
    found = probing.judged(
        launch(**states), orjson.dumps(probe).decode(), BUILT, asked_since=NOON, at=NOON
    )
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
        made = probing.judged(made, orjson.dumps(probe).decode(), BUILT, asked_since=NOON, at=NOON)
        assert made.milestones["foundation.plan"].state == state


def test_a_hint_approves_nothing() -> None:
    made = launch()
    probe = {"shop": {"shopAddress": {"address1": "1 St", "city": "Berlin", "countryCodeV2": "DE"}}}
    lines = {**probe, "internal": {"preflight": {"taxLines": 1}}}
    assert list(probing.hinted(lines)) == ["operations.tax"]
    after = probing.judged(made, orjson.dumps(probe).decode(), BUILT, asked_since=NOON, at=NOON)
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


AUDITED = '{"shop": {"hasPassword": true}}'
OPEN = {"onlineStore": {"passwordProtection": {"enabled": False}}}
TESTED = {**OPEN, "test": {"count": 1}}


def opened(at: datetime = NOON) -> Launch:
    made = launch(launch__preflight="succeeded", launch__unlock="approved")
    return made.with_milestone(replace(made.milestones["launch.unlock"], finished_at=at))


def test_a_store_that_was_closed_and_opens_before_its_check_raises_an_alarm() -> None:
    made = launch()
    assert probing.alarms(made, OPEN, asked_since=NOON, at=NOON) == []
    audit = replace(made.milestones["foundation.audit"], result=AUDITED)
    made = made.with_milestone(audit)
    assert probing.is_needed(made, BUILT, NOON)
    assert probing.alarms(made, OPEN, asked_since=NOON, at=NOON) == ["opened_early"]
    assert probing.alarms(made, {}, asked_since=NOON, at=NOON) == []
    checked = replace(made.milestones["launch.preflight"], state=MilestoneState.SUCCEEDED)
    after = made.with_milestone(checked)
    assert probing.alarms(after, OPEN, asked_since=NOON, at=NOON) == []


def test_test_orders_raise_an_alarm_once_the_store_is_open_and_for_a_week() -> None:
    later, last = NOON + timedelta(hours=1), NOON + timedelta(days=7)
    assert probing.alarms(opened(), TESTED, asked_since=NOON, at=later) == ["test_mode_on"]
    # A look that was asked before the store opened counts the test order of the launch itself.
    before = NOON - timedelta(hours=1)
    assert probing.alarms(opened(), TESTED, asked_since=before, at=later) == []
    assert (
        probing.alarms(opened(), {**OPEN, "test": {"count": 0}}, asked_since=NOON, at=later) == []
    )
    assert probing.asked_since(opened(), BUILT, later) == NOON
    assert probing.asked_since(opened(), BUILT, last) == last - timedelta(days=1)
    assert probing.is_needed(opened(), BUILT, last)
    assert not probing.alarms(opened(), TESTED, asked_since=last, at=last + timedelta(minutes=1))


def test_a_live_order_that_was_paid_lately_says_that_payments_are_taken() -> None:
    paid = {"recent": {"nodes": [{"id": "O1"}]}}
    assert judged(paid)["operations.payments"] == MilestoneState.APPROVED
    assert judged({"recent": {"nodes": []}})["operations.payments"] == MilestoneState.PENDING
    assert judged({})["operations.payments"] == MilestoneState.PENDING
    assert probing.asked_since(launch(), BUILT, NOON) == NOON - timedelta(days=30)


def test_a_look_that_was_asked_before_the_turn_of_the_test_order_approves_none() -> None:
    done = {
        id.replace(".", "__"): "approved"
        for id in PLAYBOOK.milestones["launch.test_order"].depends_on
    }
    made = launch(**done)
    seen = orjson.dumps({"test": {"count": 1}, "recent": {"nodes": [{"id": "O1"}]}}).decode()
    for since, state in (
        (NOON - timedelta(days=30), MilestoneState.PENDING),
        (None, MilestoneState.PENDING),
        (NOON, MilestoneState.APPROVED),
    ):
        after = probing.judged(made, seen, BUILT, asked_since=since, at=NOON)
        assert after.milestones["launch.test_order"].state == state


def test_an_order_at_home_is_calculated_once_an_hour_while_the_taxes_wait_for_a_person() -> None:
    assert not probing.is_taxed_again(launch(), BUILT, NOON)
    made = launch(operations__location="succeeded", catalog__products="succeeded")
    assert probing.is_taxed_again(made, BUILT, NOON)
    taxed = made.with_head(taxed_at=NOON, tax_lines=1)
    assert not probing.is_taxed_again(taxed, BUILT, NOON + timedelta(minutes=59))
    assert probing.is_taxed_again(taxed, BUILT, NOON + timedelta(hours=1))
    address = {"address1": "1 St", "city": "Berlin", "countryCodeV2": "DE"}
    seen = orjson.dumps({"shop": {"shopAddress": address}}).decode()
    hinted = probing.judged(taxed, seen, BUILT, asked_since=NOON, at=NOON)
    assert hinted.milestones["operations.tax"].is_hinted


def test_policies_that_somebody_saved_after_our_draft_are_a_hint() -> None:
    made = launch(legal__policies="succeeded")
    drafted = replace(
        made.milestones["legal.policies"],
        result='{"drafted": ["REFUND_POLICY"], "kept": ["PRIVACY_POLICY"]}',
        finished_at=NOON,
    )
    made = made.with_milestone(drafted)

    def hinted(**saved: datetime) -> bool:
        told = [{"type": kind, "updatedAt": at.isoformat()} for kind, at in saved.items()]
        seen = orjson.dumps({"shop": {"shopPolicies": told}}).decode()
        after = probing.judged(made, seen, BUILT, asked_since=NOON, at=NOON)
        return after.milestones["legal.review"].is_hinted

    later = NOON + timedelta(hours=1)
    assert hinted(REFUND_POLICY=later, PRIVACY_POLICY=NOON)
    assert not hinted(REFUND_POLICY=NOON, PRIVACY_POLICY=later)
    assert not hinted(REFUND_POLICY=later)
