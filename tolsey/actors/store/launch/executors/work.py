"""What an executor is given, what it may ask for, and what it may come to."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tolsey.actors.edit import Edit
from tolsey.actors.ports import Upload
from tolsey.actors.store.editing import edits
from tolsey.actors.store.launch.graph import MilestoneStop


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchWork:
    """What is known when a milestone takes a step.

    `spec` is the merchant's form, `given_kit` what they brought of a brand kit, `kit` the one that was drafted.
    `results` are what other milestones came to, `written` the version of each thing when we wrote it last,
    and `scopes` what the shop granted (none named = unknown).
    """

    store_id: str
    spec: Mapping[str, Any]
    given_kit: Mapping[str, Any]
    kit: Mapping[str, Any]
    results: Mapping[str, Mapping[str, Any]]
    written: Mapping[str, str | None]
    scopes: tuple[str, ...]

    def is_overwritten(self, edit: Edit, facts: Mapping[str, Any]) -> bool:
        """Tell whether somebody changed what we wrote: then it stays as they want it (rules/launch#executors)."""
        subject = edits.subject_of(edit)
        return subject in self.written and self.written[subject] != edits.version_of(edit, facts)

    def was_written(self, edit: Edit) -> bool:
        """Tell whether we made a thing before; what is gone since, somebody took away."""
        return edits.subject_of(edit) in self.written


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
class PutUp:
    """Asks to put a file where the platform takes it from; it is answered with where that is."""

    upload: Upload


@dataclass(frozen=True, slots=True)
class WriteShop:
    """What is to be changed now; the next step looks at what became of it."""

    edits: Sequence[Edit]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The milestone is done: what came out, what is to be remembered, and modules of the store's context."""

    result: Mapping[str, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)
    modules: Mapping[str, Any] = field(default_factory=dict)
    draft_hash: str | None = None
    lacks_topics: bool = False


Question: TypeAlias = ReadShop | LookAt | PutUp
StepOutcome: TypeAlias = WriteShop | Finished | MilestoneStop
Taken: TypeAlias = Generator[Question, Any, StepOutcome]
Executor: TypeAlias = Callable[[LaunchWork], Taken]
