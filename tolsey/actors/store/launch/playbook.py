"""The playbook of a launch: its sections, milestones and documents, checked before anything runs by it."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, Final, Literal

import orjson

Kind = Literal["auto", "human"]

FILE: Final = Path(__file__).with_name("playbook.json")
SECTIONS: Final = 8
AUTOMATED: Final = [
    "store-audit",
    "brand-kit",
    "brand-assets",
    "product-import",
    "inventory-set",
    "collections",
    "catalog-publish",
    "core-pages",
    "theme-prepare",
    "navigation",
    "location-setup",
    "shipping-rates",
    "policies",
    "seo",
    "analytics",
    "discount",
    "email-audiences",
    "preflight",
    "post-launch",
]
HUMAN: Final = [
    "choose-plan",
    "approve-brand",
    "review-catalog",
    "publish-theme",
    "activate-payments",
    "confirm-tax",
    "legal-review",
    "connect-domain",
    "test-order",
    "remove-password",
]
"""The skills that a playbook may name, by who has them (rules/launch#playbook)."""


class BrokenPlaybook(Exception):  # noqa: N818 - what the playbook is
    """The playbook is missing, or not one that a launch can follow; the text names what is wrong in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybookSection:
    """A part of the playbook, in the order in which it is shown."""

    id: str
    title: str
    order: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What a person does, and how a look at the shop finds out that it is done.

    Without `detect` only a person says so; `hint` is shown to them. With `before_deps` it counts before
    what it depends on is satisfied.
    """

    condition: str
    detect: Mapping[str, Any] | None
    hint: Mapping[str, Any] | None
    before_deps: bool
    instructions: str
    admin_path: str | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybookMilestone:
    """A step of a launch: of what kind, after which others, and with which permissions of the shop."""

    id: str
    title: str
    section: str
    kind: Kind
    skill: str
    depends_on: tuple[str, ...]
    scopes: tuple[str, ...]
    is_skippable: bool
    most_attempts: int
    timeout_seconds: int
    documents: tuple[str, ...]
    summary: str
    manual_fallback: str | None
    remind_after_hours: tuple[int, ...]
    checkpoint: Checkpoint | None

    @property
    def is_human(self) -> bool:
        """Whether a person does it."""
        return self.kind == "human"


@dataclass(frozen=True, slots=True, kw_only=True)
class Playbook:
    """Everything a launch goes by; `moves` has where an event leads from each state."""

    version: str
    text: str = field(repr=False)
    sections: tuple[PlaybookSection, ...]
    milestones: Mapping[str, PlaybookMilestone]
    dependants: Mapping[str, tuple[str, ...]]
    documents: Mapping[str, str] = field(repr=False)
    moves: Mapping[tuple[str, str], str]

    @classmethod
    def read(cls, text: str | bytes) -> "Playbook":
        """Read a playbook and hold it against what a launch needs; raises BrokenPlaybook."""
        try:
            told = orjson.loads(text)
            sections = [
                PlaybookSection(id=one["id"], title=one["title"], order=one["order"])
                for one in told["sections"]
            ]
            milestones = [_milestone(one) for one in told["milestones"]]
            moves = {(one["from"], one["event"]): one["to"] for one in told["transitions"]}
            documents, states = told["documents"], set(told["states"])
            version = told["version"]
        except (KeyError, TypeError, ValueError) as error:
            raise BrokenPlaybook(f"The launch playbook cannot be read: {error!r}.") from error
        for problem in _problems(sections, milestones, documents):
            raise BrokenPlaybook(f"The launch playbook is broken: {problem}.")
        for (before, event), after in moves.items():
            if {before, after} - states:
                raise BrokenPlaybook(
                    f"The launch playbook is broken: {event} leads from {before} to {after}."
                )
        return cls(
            version=version,
            text=json.dumps(told, indent=1, ensure_ascii=False),
            sections=tuple(sorted(sections, key=lambda one: one.order)),
            milestones={one.id: one for one in milestones},
            dependants={
                one.id: tuple(other.id for other in milestones if one.id in other.depends_on)
                for one in milestones
            },
            documents=documents,
            moves=moves,
        )

    @property
    def reminded_after(self) -> dict[str, Sequence[int]]:
        """Say after how many hours people are reminded of what waits for them, by the milestone."""
        people = (one for one in self.milestones.values() if one.is_human)
        return {one.id: one.remind_after_hours for one in people}

    def by_skill(self, skill: str) -> PlaybookMilestone | None:
        """Find the milestone of a skill."""
        return next((one for one in self.milestones.values() if one.skill == skill), None)


def _milestone(told: Mapping[str, Any]) -> PlaybookMilestone:
    executor = told.get("executor") or {}
    return PlaybookMilestone(
        id=told["id"],
        title=told["title"],
        section=told["section"],
        kind=told["kind"],
        skill=told["skill"],
        depends_on=tuple(told["dependsOn"]),
        scopes=tuple(told["scopes"]),
        is_skippable=told["skippable"],
        most_attempts=told.get("maxAttempts", 1),
        timeout_seconds=told.get("timeoutSeconds", 0),
        documents=tuple(executor.get("documents", ())),
        summary=executor.get("summary", ""),
        manual_fallback=told.get("manualFallback"),
        remind_after_hours=tuple(told.get("remindAfterHours", ())),
        checkpoint=_checkpoint(told) if told["kind"] == "human" else None,
    )


def _checkpoint(told: Mapping[str, Any]) -> Checkpoint:
    said = told["checkpoint"]
    return Checkpoint(
        condition=said["condition"],
        detect=said["detect"],
        hint=said.get("hint"),
        before_deps=said["detectBeforeDeps"],
        instructions=said["instructions"],
        admin_path=said["adminPath"],
        why=told["whyHuman"],
    )


def _problems(
    sections: Sequence[PlaybookSection],
    milestones: Sequence[PlaybookMilestone],
    documents: Mapping[str, str],
) -> Iterator[str]:
    """Say what is wrong, the most telling first."""
    yield from _wrong_edges(milestones)
    yield from _repeated("milestone", [one.id for one in milestones])
    yield from _repeated("section", [one.id for one in sections])
    known = {one.id for one in sections}
    for one in milestones:
        if one.section not in known:
            yield f"the milestone {one.id} is of a section {one.section} that is not there"
        for document in one.documents:
            if document not in documents:
                yield f"the milestone {one.id} sends a document {document} that is not there"
    yield from _wrong_skills(milestones)
    if len(sections) != SECTIONS:
        yield f"it has {len(sections)} sections, not {SECTIONS}"


def _wrong_edges(milestones: Sequence[PlaybookMilestone]) -> Iterator[str]:
    named = {one.id for one in milestones}
    for one in milestones:
        for other in one.depends_on:
            if other not in named:
                yield f"the edge {other} -> {one.id} begins at a milestone that is not there"
    try:
        TopologicalSorter({one.id: one.depends_on for one in milestones}).prepare()
    except CycleError as error:
        # graphlib names each before what depends on it, and the first again at the end.
        yield f"its edges go round in a circle: {' -> '.join(error.args[1])}"


def _wrong_skills(milestones: Sequence[PlaybookMilestone]) -> Iterator[str]:
    for kind, skills in (("auto", AUTOMATED), ("human", HUMAN)):
        found = [one.skill for one in milestones if one.kind == kind]
        for skill in sorted(set(found) ^ set(skills)):
            why = "is not known" if skill in found else "is nowhere"
            yield f"the skill {skill} of a milestone that is {kind} {why}"
        yield from _repeated("skill", found)


def _repeated(what: str, names: Sequence[str]) -> Iterator[str]:
    yield from (f"the {what} {name} is there twice" for name, n in Counter(names).items() if n > 1)


def shipped(file: Path = FILE) -> Playbook:
    """Read the playbook that this service goes by."""
    try:
        return Playbook.read(file.read_bytes())
    except OSError as error:
        raise BrokenPlaybook(f"The launch playbook {file} cannot be read: {error}.") from error


PLAYBOOK: Final = shipped()
"""The service does not start with one that is broken."""
