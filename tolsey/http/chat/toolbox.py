"""What an answer can be made with besides words: tools, as the model asks for them (rules/chat#tools)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from tolsey.http.answers.base import timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """A tool that the model wants used; `arguments` are JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPlan:
    """A change as a person is shown it; `sealed` is what confirms this very change."""

    sealed: str
    tool: str
    title: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    expires_at: datetime

    @property
    def told(self) -> dict[str, Any]:
        """Write it for who reads the answer."""
        return {
            "plan": self.sealed,
            "tool": self.tool,
            "title": self.title,
            "before": self.before,
            "after": self.after,
            "expiresAt": timestamp(self.expires_at),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """What became of a tool's use: a text for the model, and a plan for the person where it is a change."""

    text: str
    title: str
    is_error: bool
    plan: ShownPlan | None = None


class Toolbox(Protocol):
    """The tools of one store for one person."""

    @property
    def offered(self) -> Sequence[Mapping[str, Any]]:
        """Describe the tools that the person's role allows, as the model is told of them."""
        ...

    async def use(self, call: ModelCall) -> ToolUse:
        """Use a tool, or plan what it would change."""
        ...

    async def confirm(self, sealed: str) -> Mapping[str, Any]:
        """Carry out a plan that the person confirmed; the same plan again is answered the same."""
        ...

    async def decline(self, sealed: str) -> None:
        """Put on record that the person declined a plan; nothing was changed."""
        ...
