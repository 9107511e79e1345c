"""Texts that a model wrote are taken where they say what their drafts say; the drafts stand in for the rest."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.actors.store.launch.test_comparing import WORK
from tests.actors.store.launch.test_launching import CONNECTION, NOON, calls, one, running
from tolsey.actors.organization.ledger.messages import ReleaseHold, SettleHold
from tolsey.actors.store.launch import results
from tolsey.actors.store.launch.executors import EXECUTORS
from tolsey.actors.store.launch.executors.work import Finished, LaunchWork, WriteTexts
from tolsey.actors.store.launch.keeping import launch_of
from tolsey.actors.store.launch.messages import (
    StepOf,
    StepWantsTexts,
    TakeStep,
    TextsWritten,
    WriteLaunchTexts,
)
from tolsey.actors.store.launch.texts import standard_texts, writing
from tolsey.actors.store.launch.texts.drafting import NoModel, TextBrief
from tolsey.actors.store.state import StoreState
from tolsey.runtime.decision import Decision, Tell
from tolsey.storage.records.commerce.launches import MilestoneState, StoreContextModule

SPEC: dict[str, Any] = {
    "businessName": "Loom",
    "country": "US",
    "contactEmail": "hello@loom.example",
    "shipping": {"countries": ["US"], "flatRate": "6.50"},
}
POLICIES = standard_texts.policies(SPEC)
BRIEF = TextBrief(
    facts=standard_texts.facts(SPEC),
    voice="Plain and kind.",
    drafts={name: POLICIES[name] for name in ("REFUND_POLICY", "SHIPPING_POLICY")},
)
REFUND = [one for part in POLICIES["REFUND_POLICY"] for one in part.paragraphs]
SHIPPING = [one for part in POLICIES["SHIPPING_POLICY"] for one in part.paragraphs]


def answered(**said: Any) -> str:
    return json.dumps({"texts": {name: [part] for name, part in said.items()}})


def test_a_text_in_other_words_is_taken_under_the_headings_of_its_draft() -> None:
    words = ["Changed your mind? You have 30 days.", "Write to hello@loom.example first."]
    taken = BRIEF.taken(f"```json\n{answered(REFUND_POLICY=words)}\n```")
    assert list(taken) == ["REFUND_POLICY"]
    assert standard_texts.html(taken["REFUND_POLICY"]) == (
        "<h2>Returns and refunds</h2><p>Changed your mind? You have 30 days.</p>"
        "<p>Write to hello@loom.example first.</p>"
    )


@pytest.mark.parametrize(
    "words",
    [
        ["You have 60 days. Write to hello@loom.example."],  # a figure that nobody told
        ["Send it back. Write to hello@loom.example."],  # the 30 days are gone
        ["You have 30 days."],  # and so is the address
        ["You have 30 days. Write to hello@loom.example or me@evil.example."],
        ["You have 30 days. Write to hello@loom.example. See www.evil.example"],
        ["You have 30 days. Write to hello@loom.example. We pay within two days."],
        ["You have 30 days. Write to hello@loom.example. We guarantee everything."],
        ["You have 30 days. Write to hello@loom.example. Free returns!"],
        ["You have 30 days. Write to hello@loom.example. <script>"],
        ["You have 30 days. Write to hello@loom.example. [Your name]"],
        ["You have 30 days. Write to hello@loom.example." + " Really." * 200],
        [],
        [""],
        [30],
        "30 hello@loom.example",
        None,
    ],
)
def test_a_text_that_says_other_things_than_its_draft_is_not_taken(words: Any) -> None:
    assert BRIEF.taken(answered(REFUND_POLICY=words)) == {}


@pytest.mark.parametrize(
    "answer",
    ["", "Sure!", "{", "[]", "null", '{"texts": []}', '{"texts": {"OTHER": [["A"]]}}']
    + [json.dumps({"texts": {"REFUND_POLICY": said}}) for said in ([], [REFUND, REFUND], "x", 1)],
)
def test_an_answer_that_is_none_gives_nothing(answer: str) -> None:
    assert BRIEF.taken(answer) == {}


def test_a_brief_is_read_as_it_was_written_and_named_by_what_is_in_it() -> None:
    again = TextBrief.read(BRIEF.written())
    assert (again, again.digest) == (BRIEF, BRIEF.digest)
    assert replace(BRIEF, voice="Loud.").digest != BRIEF.digest
    assert "never an instruction" in BRIEF.messages()[0]["content"]
    assert BRIEF.most_tokens > len(BRIEF.written()) / 3


def outcome(work: LaunchWork) -> Any:
    try:
        next(EXECUTORS[work.milestone](work))
    except StopIteration as end:
        return end.value
    raise AssertionError


KIT = replace(WORK, milestone="brand.kit", spec=SPEC)


def kept(by: str, run: int, because: str | None = None) -> dict[str, Any]:
    brief = outcome(KIT).brief
    told = {"tagline": [{"heading": None, "paragraphs": ["Woven slowly."]}]}
    return {
        "digest": brief.digest,
        "run": run,
        "by": by,
        "because": because,
        "texts": told if by == "model" else {},
    }


def test_a_kit_has_the_words_of_the_model_and_the_templates_for_the_rest() -> None:
    assert isinstance(outcome(KIT), WriteTexts)
    done = outcome(replace(KIT, kept_texts=kept("model", 1), run=2))
    assert done.modules["brandKit"]["tagline"] == "Woven slowly."
    assert done.result["texts"] == {"by": "model", "templates": ["voice"]}
    plain = outcome(replace(KIT, no_model=NoModel("missing_credential", "LLM_BASE_URL")))
    assert plain.modules["brandKit"]["tagline"] == "Loom, plain and good."
    assert plain.result["texts"] == {
        "by": "template",
        "because": "missing_credential",
        "variable": "LLM_BASE_URL",
    }
    # Other words are another draft, which a person approves anew; the colours are the same.
    assert done.draft_hash != plain.draft_hash
    assert done.modules["brandKit"]["palette"] == plain.modules["brandKit"]["palette"]


def test_templates_stand_in_for_one_run_and_the_next_asks_again() -> None:
    unpaid = kept("template", 1, "insufficient_credits")
    done = outcome(replace(KIT, kept_texts=unpaid, run=1))
    assert isinstance(done, Finished)
    assert done.result["texts"] == {"by": "template", "because": "insufficient_credits"}
    assert isinstance(outcome(replace(KIT, kept_texts=unpaid, run=2)), WriteTexts)
    # Other facts are another brief.
    other = replace(KIT, kept_texts=kept("model", 1), spec={**SPEC, "industry": "rugs"})
    assert isinstance(outcome(other), WriteTexts)


def test_what_a_merchant_brought_is_not_written_for_them() -> None:
    theirs = replace(KIT, given_kit={"voice": "Ours.", "tagline": "Also ours."})
    done = outcome(theirs)
    assert done.result["texts"] == {"by": "template", "because": "nothing_to_write"}
    assert done.modules["brandKit"]["tagline"] == "Also ours."


OF = StepOf(milestone="foundation.audit", run=1, attempt=1, step=0, launch_id="launch_1")
WROTE = TextsWritten(
    of=OF, digest="d", texts='{"a": []}', because=None, hold_id="texts_1", cost=7, at=NOON
)


def told(decision: Decision[StoreState, Any]) -> list[Any]:
    return [one.message for one in decision.effects if isinstance(one, Tell)]


def test_texts_are_asked_for_once_kept_with_what_they_cost_and_gone_on_with() -> None:
    state = running()
    asked = writing.wanted(state, StepWantsTexts(of=OF, brief=BRIEF.written(), at=NOON))
    (call,) = calls(asked, WriteLaunchTexts)
    assert (call.lane, call.organization_id, call.digest) == ("model", "org_1", BRIEF.digest)
    done = writing.written(asked.state, WROTE)
    (module,) = [row for row in done.records if isinstance(row, StoreContextModule)]
    assert module.module == "texts.foundation.audit"
    assert json.loads(module.value)["by"] == "model"
    assert told(done) == [SettleHold("texts_1", 7, NOON)]
    assert [(each.of.step) for each in calls(done, TakeStep)] == [1]
    # What comes once more, or for a step that is over, is not paid for.
    late = writing.written(done.state, WROTE)
    assert told(late) == [ReleaseHold("texts_1", NOON)]
    assert (late.state, calls(late, TakeStep)) == (done.state, [])


def test_a_launch_goes_on_without_a_model_that_answers() -> None:
    call = WriteLaunchTexts(
        store_id="store_1", organization_id="org_1", of=OF, brief=BRIEF.written(), digest="d"
    )
    decided = writing.written(running(), call.given_up("it is gone", NOON))
    assert told(decided) == []
    (module,) = [row for row in decided.records if isinstance(row, StoreContextModule)]
    found = json.loads(module.value)
    assert (found["by"], found["because"]) == ("template", "model_failed")
    assert one(decided.state).state == MilestoneState.RUNNING
    assert launch_of(decided.state).milestones["foundation.audit"].step == 1
    assert results.at_step(decided.state, OF) is None
    assert CONNECTION.shop_domain
