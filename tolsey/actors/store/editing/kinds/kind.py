"""What every kind of edit says of itself.

Facts are what the shop says of a thing, as far as edits of a kind are about it. What is shown or kept of them
is never more than that, and of an order's free text nothing that we did not write ourselves. Amounts
are `{amount, currency}` in minor units.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Final

from tolsey.actors.edit import Edit

Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Planned:
    """What an edit would do: the facts after it, and the change to ask for; None when it is done."""

    after: Facts
    change: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Rejected:
    """Why an edit is not made."""

    code: str
    detail: str


MISSING: Final = Rejected(
    "not_found", "The shop has no item with this id. Check the id, or search for the item."
)


class EditVerdict(StrEnum):
    """What a thing says of an edit that was sent and never answered."""

    APPLIED = "applied"
    UNCHANGED = "unchanged"
    UNCLEAR = "unclear"


class EditKind(ABC):
    """What an edit of a kind does to a thing, how the shop tells that it was made, and what undoes it."""

    tools: ClassVar[tuple[str, ...]]
    """What agents call to have it made."""
    thing: ClassVar[str]
    """Edits of one thing are made one after the other."""
    ids: ClassVar[tuple[str, ...]]
    """What the ids of a thing are called."""
    platform_scope: ClassVar[str]
    """What the shop must have granted."""
    or_scope: ClassVar[str | None] = None
    """What will do in its place."""
    is_keyed: ClassVar[bool] = False
    """Whether the platform makes it once under a key, so that one that was sent may be sent again."""
    is_compared: ClassVar[bool] = False
    """Whether the platform refuses it where the thing is another by then than it was planned from."""
    needs_person: ClassVar[bool] = False
    """Whether a person of the store confirms it, whoever asked for it (rules/agents#refunds)."""
    only_grows: ClassVar[bool] = False
    """Whether it only adds, so that a thing without it shows that it was not made."""

    @abstractmethod
    def plan(self, wanted: Facts, facts: Facts) -> Planned | Rejected:
        """Say what is to be sent, and what the thing is then."""

    @abstractmethod
    def shown(self, wanted: Facts, facts: Facts) -> dict[str, Any]:
        """Show what a thing is, as far as the edit is about it."""

    @abstractmethod
    def is_made(self, edit: Edit, before: Facts, now: Facts) -> bool:
        """Whether a thing that is now shown like this was edited as planned."""

    def undo(self, before: Facts, after: Facts, version: str | None) -> Facts | None:
        """Say what is asked of the same thing to have it as before; None where nothing does that."""
        del before, after, version
        return None


def folded(tags: list[str]) -> set[str]:
    """Take tags as the platform compares them: whatever their case."""
    return {tag.casefold() for tag in tags}


def same(wanted: Facts, now: Facts) -> bool:
    """Compare values by name; the platform keeps tags in an order of its own."""
    return all(
        folded(now[name]) == folded(value) if name == "tags" else now[name] == value
        for name, value in wanted.items()
    )
