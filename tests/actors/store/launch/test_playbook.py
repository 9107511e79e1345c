"""The playbook that a launch goes by: what it is, and that a broken one stops the start and is named."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from tolsey.actors.store.launch.playbook import (
    FILE,
    PLAYBOOK,
    BrokenPlaybook,
    Playbook,
    shipped,
)

Told = dict[str, Any]


def milestone(told: Told, id: str) -> Told:
    found: Told = next(one for one in told["milestones"] if one["id"] == id)
    return found


def broken(change: Callable[[Told], object]) -> str:
    told = orjson.loads(FILE.read_bytes())
    change(told)
    with pytest.raises(BrokenPlaybook) as raised:
        Playbook.read(orjson.dumps(told))
    return str(raised.value)


def test_a_launch_has_29_milestones_19_automated_and_10_human_in_8_sections() -> None:
    kinds = Counter(one.kind for one in PLAYBOOK.milestones.values())
    assert kinds == {"auto": 19, "human": 10}
    assert len(PLAYBOOK.sections) == 8
    assert {one.section for one in PLAYBOOK.milestones.values()} == {
        one.id for one in PLAYBOOK.sections
    }
    assert len({name for one in PLAYBOOK.milestones.values() for name in one.scopes}) == 22


def test_an_edge_from_nowhere_is_named() -> None:
    said = broken(lambda told: milestone(told, "brand.kit")["dependsOn"].append("brand.idea"))
    assert "the edge brand.idea -> brand.kit" in said


def test_a_circle_of_edges_is_named() -> None:
    said = broken(
        lambda told: milestone(told, "foundation.audit")["dependsOn"].append("launch.verify")
    )
    assert "in a circle" in said
    assert "launch.unlock -> launch.verify" in said
    assert "launch.verify -> foundation.audit" in said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda told: told["milestones"].pop(2), "begins at a milestone that is not there"),
        (lambda told: told["sections"].pop(), "of a section launch that is not there"),
        (
            lambda told: told["sections"].append({"id": "more", "title": "More", "order": 9}),
            "it has 9 sections, not 8",
        ),
        (
            lambda told: milestone(told, "brand.kit").update(skill="logo-draw"),
            "the skill brand-kit of a milestone that is auto is nowhere",
        ),
        (
            lambda told: milestone(told, "foundation.plan").update(kind="auto"),
            "the skill choose-plan of a milestone that is auto is not known",
        ),
        (
            lambda told: told["milestones"].append(told["milestones"][0]),
            "the milestone foundation.audit is there twice",
        ),
        (lambda told: told["documents"].pop("growth.seo"), "sends a document growth.seo"),
        (lambda told: told.pop("transitions"), "cannot be read"),
        (
            lambda told: told["transitions"].append(
                {"from": "pending", "event": "fly", "to": "gone"}
            ),
            "fly leads from pending to gone",
        ),
    ],
)
def test_a_broken_playbook_says_what_is_wrong(change: Callable[[Told], object], said: str) -> None:
    assert said in broken(change)


def test_a_playbook_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(BrokenPlaybook, match=r"playbook .*none\.json cannot be read"):
        shipped(tmp_path / "none.json")


def test_no_json_is_no_playbook() -> None:
    with pytest.raises(BrokenPlaybook, match="cannot be read"):
        Playbook.read("{")
