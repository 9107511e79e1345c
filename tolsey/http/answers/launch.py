"""What the service says of launches."""

from typing import Self

from tolsey.actors.store.launch.executors import BUILT
from tolsey.actors.store.launch.playbook import Kind, PlaybookMilestone
from tolsey.http.answers.base import ApiAnswer


class SkillAnswer(ApiAnswer):
    """What a milestone of the playbook takes: who has the skill, and with which permissions of the shop.

    With an `executor` this version carries it out by itself. What is automatic and has none stays queued, and
    nothing waits for it.
    """

    skill: str
    title: str
    section: str
    kind: Kind
    executor: bool
    scopes: list[str]

    @classmethod
    def of(cls, milestone: PlaybookMilestone) -> Self:
        """Show the skill of a milestone."""
        scopes = list(milestone.scopes)
        return cls.read(milestone, executor=milestone.id in BUILT, scopes=scopes)


class SkillsAnswer(ApiAnswer):
    """All skills, in the order of the playbook."""

    items: list[SkillAnswer]
