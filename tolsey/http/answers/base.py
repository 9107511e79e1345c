"""The shape of answers: camelCase outside, snake_case inside, times in RFC 3339 with milliseconds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, WithJsonSchema
from pydantic.alias_generators import to_camel

from tolsey.http.web.paging import cut
from tolsey.storage.database import Row

Found = TypeVar("Found")
Item = TypeVar("Item", bound="ApiAnswer")
Value = TypeVar("Value")

ROWS: Final = (Row, dict)
NoBody = Literal[""]
Created = Literal[201]
Accepted = Literal[202]
NoContent = Literal[204]
"""Statuses beside 200, as part of what a view says that it returns."""


def timestamp(at: datetime) -> str:
    """Write a time as RFC 3339 in UTC, with milliseconds."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


Timestamp = Annotated[
    datetime,
    PlainSerializer(timestamp, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}, mode="serialization"),
]


def _is_none(value: object) -> bool:
    return value is None


Omittable = Annotated[Value | None, Field(exclude_if=_is_none)]
"""What is left out where there is none; such a field has the default None."""


def _opened(schema: dict[str, Any]) -> None:
    """Say nothing against more fields: some may come (rules/requests#change)."""
    if schema.get("additionalProperties") is False:
        del schema["additionalProperties"]


class Projection(BaseModel):
    """An answer that can be made of what is kept, or of another answer.

    Models are built when they are first used: hundreds of them would take a quarter of a start.
    """

    model_config = ConfigDict(defer_build=True)

    @classmethod
    def read(cls, kept: Any, **others: Any) -> Self:
        """Show what is kept by its fields, or columns, of the same names; others are given."""
        names = [name for name in cls.__pydantic_fields__ if name not in others]
        if isinstance(kept, ROWS):
            return cls(**{name: kept[name] for name in names}, **others)
        return cls(**{name: getattr(kept, name) for name in names}, **others)


class ApiAnswer(Projection):
    """What a route answers with; made by its fields' names, written by their aliases."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        frozen=True,
        serialize_by_alias=True,
        validate_by_name=True,
        validate_by_alias=False,
        json_schema_extra=_opened,
    )


class ListAnswer(ApiAnswer, Generic[Item]):
    """A part of a list, newest first; `nextCursor` is null on its last page."""

    items: list[Item]
    next_cursor: str | None

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        """Name the list of stores `StoreList`."""
        return f"{params[0].__name__.removesuffix('Answer')}List"


def list_of(
    found: Sequence[Found],
    limit: int,
    *,
    key: Callable[[Found], str],
    answer: Callable[[Found], Item],
) -> ListAnswer[Item]:
    """Answer with a page of what was `found`; see `paging.cut`."""
    rows, following = cut(found, limit, key=key)
    return ListAnswer(items=[answer(row) for row in rows], next_cursor=following)


@dataclass(frozen=True, slots=True)
class Media:
    """What a Response holds that a view makes itself; beside an answer where that is its shape.

    A view says `-> Annotated[Response, Media("text/plain")]`; no kind stands for no body.
    """

    kind: str | None
    status: int = 200
    shape: type[BaseModel] | None = None


Described = type[BaseModel] | Media | None
"""What a status answers with: an answer as JSON, another kind of body, or none."""


def answers_of(view: Callable[..., Any]) -> Mapping[int, Sequence[Described]]:
    """Read from a view's annotation what it may answer with, by status.

    A view says `-> ApiAnswer`, `-> tuple[ApiAnswer, Literal[201]]` with headers after it where it
    has some, `-> Annotated[Response, Media(...)]`, or a union of those.
    """
    said = view.__annotations__.get("return")
    forms = get_args(said) if get_origin(said) in (Union, UnionType) else (said,)
    found = dict[int, list[Described]]()
    for form in forms:
        for status, body in _answers_in(form):
            found.setdefault(status, []).append(body)
    return found


def _answers_in(form: Any) -> Sequence[tuple[int, Described]]:
    """Read one form of a view's annotation."""
    if get_origin(form) is Annotated:
        found = [one for one in get_args(form)[1:] if isinstance(one, Media)]
        return [(one.status, one) for one in found]
    body, status, *_ = get_args(form) if get_origin(form) is tuple else (form, Literal[200])
    if body == NoBody:
        return [(number, None) for number in get_args(status)]
    if isinstance(body, type) and issubclass(body, BaseModel):
        return [(number, body) for number in get_args(status)]
    return []
