"""Makes tools of methods over models, so that every schema and every check comes from one place.

Arguments and answers are camelCase-free: their fields are named as the tools are, in snake_case
(rules/agents#protocol). An answer that does not fit its own schema is a bug of ours and is refused.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, get_type_hints

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from tolsey.actors.refusals import Refusal
from tolsey.http.answers.base import Projection
from tolsey.http.mcp.call import ToolCall
from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.registry import READS, Hints, InvalidArguments, Tool, ToolFailed, ToolResult
from tolsey.http.mcp.tools.schemas import answer_schema_of, schema_of
from tolsey.http.mcp.tools.shop_words import written
from tolsey.http.mcp.wire import error_of
from tolsey.http.web.context import Service
from tolsey.http.web.refusing.errors import refusal_of_storage
from tolsey.storage.errors import StorageError
from tolsey.storage.reports.pool import OrganizationReports

AT_HTTP_LEVEL: Final = frozenset({429, 503, 504})
"""Statuses that say nothing of the arguments: the client is to wait, not the model to think."""
OFFER: Final = "offer"
"""Where a method keeps how it is offered."""


class ToolArguments(BaseModel):
    """What a tool takes: what its schema refuses is refused, and nothing is read as something else."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _normalize(cls, given: object) -> object:
        """Leave out optional arguments that are null, and take 1.0 as 1, the same number to a schema.

        Clients in strict mode have to send every argument: they send null for one that the model omits.
        """
        if not isinstance(given, Mapping):
            return given
        taken: dict[str, object] = {}
        for name, value in given.items():
            field = cls.model_fields.get(name)
            is_empty = value is None or (name == "cursor" and value == "")
            if is_empty and field is not None and not field.is_required():
                continue
            taken[name] = int(value) if isinstance(value, float) and value.is_integer() else value
        return taken


class Nothing(ToolArguments):
    """No arguments."""


class ToolAnswer(Projection):
    """What a tool answers."""

    model_config = ConfigDict(extra="forbid", frozen=True)


A = TypeVar("A", bound=ToolArguments)
Item = TypeVar("Item")
Run = TypeVar("Run", bound=Callable[..., Awaitable[ToolAnswer]])


class ToolPage(ToolAnswer, Generic[Item]):
    """A part of a list."""

    items: list[Item]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """How a method is offered to agents."""

    name: str
    title: str
    description: str
    scopes: frozenset[str]
    hints: Hints


def reads(
    name: str, title: str, description: str, *, scopes: frozenset[str], hints: Hints = READS
) -> Callable[[Run], Run]:
    """Offer a method as a tool; its annotations say what it takes and answers."""

    def offered(run: Run) -> Run:
        run.__dict__[OFFER] = ToolOffer(name, title, description, scopes, hints)
        return run

    return offered


class ReadTools:
    """Tools that read, for whoever the gate admitted: what methods of a class `reads` offers."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def tools(self) -> Sequence[Tool]:
        """List the tools, in the order in which they are written."""
        offers = ((run, vars(run).get(OFFER)) for run in vars(type(self)).values() if callable(run))
        return [_tool(offer, run.__get__(self)) for run, offer in offers if offer is not None]

    def _reports(self, principal: Principal) -> OrganizationReports:
        return self._service.reports.of(principal.organization_id)


def _tool(offer: ToolOffer, run: Callable[[Principal, Any], Awaitable[ToolAnswer]]) -> Tool:
    """Make a tool. A Refusal of its method is told to the model, with its code and fields."""
    types = get_type_hints(run)
    arguments: type[ToolArguments] = types["asked"]

    async def called(call: ToolCall, given: ToolArguments) -> ToolResult:
        try:
            found = await run(call.principal, given)
        except Refusal as refusal:
            raise tool_error(refusal) from refusal
        except StorageError as error:
            raise tool_error(refusal_of_storage(error)) from error
        return answered(found, declared=types["return"])

    return Tool(
        offer.name,
        offer.title,
        offer.description,
        offer.hints,
        schema_of(arguments),
        reading(arguments),
        called,
        answer_schema_of(types["return"]),
        offer.scopes,
    )


def answered(
    found: ToolAnswer, *, declared: type[ToolAnswer] | None = None, is_error: bool = False
) -> ToolResult:
    """Make an answer's result: the same JSON for models, who get a text, and for programs."""
    text = written(found, declared)
    return ToolResult(
        [{"type": "text", "text": text.decode()}],
        structured=orjson.Fragment(text),
        is_error=is_error,
    )


def reading(model: type[A]) -> Callable[[Mapping[str, Any]], A]:
    """Read arguments as a model, or say of each that is wrong what it must be."""

    def read(given: Mapping[str, Any]) -> A:
        try:
            return model.model_validate(given)
        except ValidationError as error:
            found = error.errors(include_input=False, include_url=False, include_context=False)
            raise InvalidArguments([_problem(dict(one)) for one in found]) from error

    return read


def _problem(one: Mapping[str, Any]) -> str:
    where = ".".join(str(part) for part in one["loc"]) or "arguments"
    return f"{where}: {one['msg']}"


def tool_error(refusal: Refusal) -> Exception:
    """Say a refusal where it belongs: to the client when it is to wait, else to the model."""
    if refusal.status in AT_HTTP_LEVEL:
        return error_of(refusal)
    fields = {name: value for name, value in refusal.fields.items() if value is not None}
    return ToolFailed(refusal.detail, code=refusal.code, **fields)
