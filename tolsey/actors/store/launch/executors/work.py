"""What an executor is given, what it may ask for, and what it may come to."""

import hashlib
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, TypeAlias

from tolsey.actors.edit import Edit
from tolsey.actors.ports import Upload
from tolsey.actors.store.editing import edits
from tolsey.actors.store.editing.kinds.kind import Rejected
from tolsey.actors.store.launch.graph import MilestoneStop
from tolsey.actors.store.launch.playbook import PLAYBOOK
from tolsey.actors.store.launch.texts.drafting import (
    NOTHING_TO_WRITE,
    DraftedTexts,
    NoModel,
    TextBrief,
)

MOST_AT_ONCE: Final = 25
"""So many changes are asked for in one step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchWork:
    """What is known when a milestone takes a step.

    `spec` is the merchant's form, `given_kit` what they brought of a brand kit, `kit` the one that was drafted.
    `results` are what other milestones came to, `written` the version of each thing when we wrote it last,
    and `scopes` what the shop granted (none named = unknown). `decided` are the milestones that a person
    marked done, and `began_at` is when the attempt began. `tax_lines` is how many an order at home carried
    when a person confirmed the taxes, where one could be calculated. `kept_texts` are the texts that were written
    of this milestone last; `no_model` says why no model writes any now. `waited_seconds` is how long ago its
    turn came. `storefront_password` lets its owner into a
    store that is not open yet, where they told it.
    """

    store_id: str
    launch_id: str
    milestone: str
    began_at: datetime
    spec: Mapping[str, Any]
    given_kit: Mapping[str, Any]
    kit: Mapping[str, Any]
    results: Mapping[str, Mapping[str, Any]]
    written: Mapping[str, str | None]
    scopes: tuple[str, ...]
    decided: frozenset[str]
    theme_url: str | None
    tax_lines: int | None
    run: int = 1
    kept_texts: Mapping[str, Any] | None = None
    no_model: NoModel | None = None
    waited_seconds: float = 0.0
    storefront_password: str | None = field(default=None, repr=False)

    def drafted(self, brief: TextBrief) -> DraftedTexts | None:
        """Give the texts of a brief; None while they are still to be written.

        A model wrote them once for the same brief. Where the templates had to stand in for it, the next run asks again.
        """
        kept = self.kept_texts
        if kept is not None and kept["digest"] == brief.digest:
            is_final = kept["by"] == "model" or kept["run"] == self.run
            if is_final or self.no_model is not None:
                return DraftedTexts.kept(brief, kept)
        why = self.no_model if brief.drafts else NOTHING_TO_WRITE
        return None if why is None else DraftedTexts.of_templates(brief, why)

    def processing(self, detail: str) -> MilestoneStop:
        """Wait for what the platform is still at work on: half as long as was waited already, a minute at most.

        It has the milestone's time of the playbook; after that each look uses an attempt, so that there is an end.
        """
        is_late = self.waited_seconds > PLAYBOOK.milestones[self.milestone].timeout_seconds
        return MilestoneStop(
            kind="retryable" if is_late else "throttled",
            reason="processing",
            detail=detail,
            wait_seconds=min(60.0, self.waited_seconds / 2),
        )

    def is_overwritten(self, edit: Edit, facts: Mapping[str, Any]) -> bool:
        """Tell whether somebody changed what we wrote: then it stays as they want it (rules/launch#executors)."""
        subject = edits.subject_of(edit)
        return subject in self.written and self.written[subject] != edits.version_of(edit, facts)

    def was_written(self, edit: Edit) -> bool:
        """Tell whether we made a thing before; what is gone since, somebody took away."""
        return edits.subject_of(edit) in self.written

    def is_outdated(self, edit: Edit) -> bool:
        """Tell whether what we wrote last is no longer what is wanted: the merchant's form is another since."""
        wrote = self.results.get(self.milestone, {}).get(WROTE, {}).get(edits.subject_of(edit))
        version = self.written.get(edits.subject_of(edit))
        return wrote is not None and wrote["version"] == version and wrote["of"] != _digest(edit)

    def wrote(self, wanted: Sequence[Edit]) -> dict[str, Any]:
        """Say what we wrote of what is wanted, for the result that the next run compares with."""
        return {
            subject: {"version": self.written[subject], "of": _digest(edit)}
            for edit in wanted
            if (subject := edits.subject_of(edit)) in self.written
        }


WROTE: Final = "wrote"


def _digest(edit: Edit) -> str:
    return hashlib.sha256(json.dumps(edit.wanted, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadShop:
    """Asks a document of the shop; it is answered with the data."""

    document: str
    variables: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LookAt:
    """Asks what a thing is now; it is answered with its facts, or None."""

    edit: Edit


@dataclass(frozen=True, slots=True)
class LookAtAll:
    """Asks what many things are now; it is answered with the facts of each, or None."""

    edits: Sequence[Edit]


@dataclass(frozen=True, slots=True)
class PutUp:
    """Asks to put a file where the platform takes it from; it is answered with where that is."""

    upload: Upload


@dataclass(frozen=True, slots=True)
class WriteShop:
    """What is to be changed now; the next step looks at what became of it.

    `before` shows by their subjects those things whose change is planned already, of what was just looked at.
    `follows` is what a next step asks for of things that these make, as far as it can be told: a dry run shows it.
    """

    edits: Sequence[Edit]
    before: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    follows: Sequence[Edit] = ()


@dataclass(frozen=True, slots=True)
class WriteTexts:
    """What the language model is to write; the next step finds its texts, or why there are none."""

    brief: TextBrief


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The milestone is done: what came out, what is to be remembered, and modules of the store's context."""

    result: Mapping[str, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)
    modules: Mapping[str, Any] = field(default_factory=dict)
    draft_hash: str | None = None
    lacks_topics: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPages:
    """Asks for pages of the store's own site; it is answered with the status and text of each, None where none came."""

    host: str
    paths: tuple[str, ...]
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class CountDeliveries:
    """Asks what the shop told us of since then; it is answered with the number of deliveries by topic."""

    since: datetime


@dataclass(frozen=True, slots=True)
class CountSales:
    """Asks what was sold in each hour since then; it is answered with rows of `SoldHour`."""

    since: datetime


Question: TypeAlias = (
    ReadShop | LookAt | LookAtAll | ReadPages | CountDeliveries | CountSales | PutUp
)
StepOutcome: TypeAlias = WriteShop | WriteTexts | Finished | MilestoneStop
Taken: TypeAlias = Generator[Question, Any, StepOutcome]
Executor: TypeAlias = Callable[[LaunchWork], Taken]


@dataclass(frozen=True, slots=True)
class InShop:
    """What is in the shop of what is wanted, in the same order, and what is still to be written."""

    facts: Sequence[Mapping[str, Any] | None]
    write: WriteShop

    @property
    def missing(self) -> Sequence[Edit]:
        """What is still to be written."""
        return self.write.edits

    @property
    def things(self) -> Sequence[Mapping[str, Any] | None]:
        """What stands in the place of each; None where nothing does."""
        return [None if one is None else one["found"] for one in self.facts]


def compare(
    work: LaunchWork,
    wanted: Sequence[Edit],
    *,
    may_set: Callable[[Mapping[str, Any]], bool] = lambda _: False,
) -> Generator[Question, Any, InShop]:
    """Look at all that is wanted and say what is to be written.

    What we wrote is written again only while nobody else changed it, and the merchant wants something else by now; what we
    made and somebody took away stays away. What others made stays theirs, unless `may_set` says otherwise of it.
    """
    facts = yield LookAtAll(wanted)
    due = list[tuple[Edit, Mapping[str, Any]]]()
    for edit, known in zip(wanted, facts, strict=True):
        if known is None:
            continue
        found = known["found"]
        if work.was_written(edit):
            is_due = work.is_outdated(edit) and not work.is_overwritten(edit, known)
        else:
            is_due = found is None or may_set(found)
        if is_due:
            due.append((edit, known))
    return InShop(facts, planned(due, with_rejected=False))


def planned(
    due: Sequence[tuple[Edit, Mapping[str, Any]]], *, with_rejected: bool = True
) -> WriteShop:
    """Ask for changes as they are planned from what was just looked at.

    What would change nothing is left out; what cannot be made says why at its turn, unless it is left out, too.
    """
    some, before = list[Edit](), dict[str, Mapping[str, Any]]()
    for edit, facts in due:
        plan = edits.plan(edit, facts)
        if isinstance(plan, Rejected):
            some += [edit] if with_rejected else []
        elif plan.change is not None:
            version = edits.version_of(edit, facts)
            some.append(replace(edit, version=version, planned=version, change=plan.change))
            before[edits.subject_of(edit)] = edits.shown(edit, facts)
    return WriteShop(some[:MOST_AT_ONCE], before)


def number(id: str) -> str:
    """Take the number of a global id."""
    return id.rpartition("/")[2]
