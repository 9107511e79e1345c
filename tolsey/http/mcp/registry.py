"""What a server offers: tools, resources, prompts and completions, each with who may use it.

A registry is made once and never changes, so its lists are the same for every request and their bytes
are kept (rules/agents#protocol).
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from tolsey.http.mcp.call import ToolCall

TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""What clients take: 128 by the protocol, 64 by the strictest directory."""


class InvalidArguments(Exception):  # noqa: N818 - what the arguments are
    """Arguments that do not fit a tool; each text names the argument and what it must be."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


class ToolFailed(Exception):  # noqa: N818 - what became of it
    """A tool could not do what it was asked; the model is told why and may do better."""

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        self.fields = fields


@dataclass(frozen=True, slots=True)
class Hints:
    """What a call can do to the world; all four are always said (rules/agents#tools)."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool


READS: Final = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answers: content blocks for people and models, and the value for programs."""

    content: Sequence[Mapping[str, Any]]
    structured: Any = None
    is_error: bool = False

    @property
    def result(self) -> dict[str, Any]:
        """Write it down."""
        written: dict[str, Any] = {"content": list(self.content)}
        if self.structured is not None:
            written["structuredContent"] = self.structured
        if self.is_error:
            written["isError"] = True
        return written


@dataclass(frozen=True, slots=True)
class InputRequired:
    """What must be known first: requests to the client's user or model, and a state to come back.

    The state is sealed on its way out and opened on its way in, so that `Call.state` is ours.
    """

    requests: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    state: Any = None


class ReadArguments(Protocol):
    """Reads the arguments of a call into what the tool takes, or raises InvalidArguments."""

    def __call__(self, given: Mapping[str, Any], /) -> Any:
        """Read them."""
        ...


async def _unnoted(call: ToolCall, code: str) -> None:
    """Take no note of a call that was turned away."""
    del call, code


@dataclass(frozen=True, slots=True)
class Tool:
    """Something an agent can do.

    `scopes` are all that each call needs; some need more of `scopes_of_some`, and who could never be allowed
    those is not offered it. `turned_away` hears of one that lacked them, or whose arguments
    could not be read, with the code of why.
    """

    name: str
    title: str
    description: str
    hints: Hints
    input_schema: Mapping[str, Any]
    read: ReadArguments
    run: Callable[[ToolCall, Any], Awaitable[ToolResult | InputRequired]]
    output_schema: Mapping[str, Any] | None = None
    scopes: frozenset[str] = frozenset()
    turned_away: Callable[[ToolCall, str], Awaitable[None]] = _unnoted
    scopes_of_some: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not TOOL_NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is no name of a tool")

    @property
    def scopes_of_all(self) -> frozenset[str]:
        """What a role must allow for the tool to be offered."""
        return self.scopes | self.scopes_of_some

    @property
    def listed(self) -> dict[str, Any]:
        """Describe the tool to a client."""
        described: dict[str, Any] = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input_schema,
            "annotations": {
                "readOnlyHint": self.hints.read_only,
                "destructiveHint": self.hints.destructive,
                "idempotentHint": self.hints.idempotent,
                "openWorldHint": self.hints.open_world,
            },
        }
        if self.output_schema is not None:
            described["outputSchema"] = self.output_schema
        return described


Contents = Mapping[str, str]
"""What a resource holds: its `text`."""


@dataclass(frozen=True, slots=True)
class OfferedResource:
    """Something that can be read at one address."""

    uri: str
    name: str
    title: str
    description: str
    mime_type: str
    read: Callable[[ToolCall], Awaitable[Contents]]
    scopes: frozenset[str] = frozenset()

    @property
    def listed(self) -> dict[str, Any]:
        """Describe the resource to a client."""
        return {
            "uri": self.uri,
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "mimeType": self.mime_type,
        }


Complete = Callable[[ToolCall, str], Awaitable[Sequence[str]]]
"""Proposes values that begin like what was typed: all, or more than are shown at once."""


@dataclass(frozen=True, slots=True)
class Template:
    """Addresses of one form: `{name}` stands for a part without a slash (RFC 6570, level 1).

    `read` answers None when there is nothing at the address.
    """

    uri_template: str
    name: str
    title: str
    description: str
    mime_type: str
    read: Callable[[ToolCall, Mapping[str, str]], Awaitable[Contents | None]]
    scopes: frozenset[str] = frozenset()
    completions: Mapping[str, Complete] = field(default_factory=dict)

    @property
    def listed(self) -> dict[str, Any]:
        """Describe the template to a client."""
        return {
            "uriTemplate": self.uri_template,
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "mimeType": self.mime_type,
        }

    @property
    def pattern(self) -> re.Pattern[str]:
        """What its addresses look like."""
        parts = re.split(r"\{(\w+)\}", self.uri_template)
        return re.compile(
            "".join(
                f"(?P<{part}>[^/]+)" if index % 2 else re.escape(part)
                for index, part in enumerate(parts)
            )
        )


@dataclass(frozen=True, slots=True)
class Argument:
    """Something a prompt is filled with."""

    name: str
    description: str
    required: bool = True


@dataclass(frozen=True, slots=True)
class Prompt:
    """Words to begin a conversation with."""

    name: str
    title: str
    description: str
    get: Callable[
        [ToolCall, Mapping[str, str]], Awaitable[Sequence[Mapping[str, Any]] | InputRequired]
    ]
    arguments: Sequence[Argument] = ()
    completions: Mapping[str, Complete] = field(default_factory=dict)

    @property
    def listed(self) -> dict[str, Any]:
        """Describe the prompt to a client."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "arguments": [
                {"name": one.name, "description": one.description, "required": one.required}
                for one in self.arguments
            ],
        }


@dataclass(frozen=True, slots=True)
class Registry:
    """All that is offered."""

    tools: Mapping[str, Tool] = field(default_factory=dict)
    resources: Mapping[str, OfferedResource] = field(default_factory=dict)
    templates: Sequence[Template] = ()
    prompts: Mapping[str, Prompt] = field(default_factory=dict)
    patterns: Sequence[tuple[re.Pattern[str], Template]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "patterns", [(one.pattern, one) for one in self.templates])

    @classmethod
    def of(cls, *offered: Tool | OfferedResource | Template | Prompt) -> "Registry":
        """Gather what is offered, in the order it is listed; a name is given once."""
        tools, resources, prompts = {}, {}, {}
        for one in offered:
            match one:
                case Tool():
                    tools[one.name] = one
                case OfferedResource():
                    resources[one.uri] = one
                case Prompt():
                    prompts[one.name] = one
        templates = [one for one in offered if isinstance(one, Template)]
        if len(tools) + len(resources) + len(prompts) + len(templates) != len(offered):
            raise ValueError("something is offered twice under one name")
        return cls(tools, resources, templates, prompts)
