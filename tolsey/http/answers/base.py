"""The shape of answers: camelCase outside, snake_case inside, times in RFC 3339 with milliseconds."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import UnionType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from pydantic import BaseModel, ConfigDict, PlainSerializer
from pydantic.alias_generators import to_camel

from tolsey.http.answers.views import timestamp
from tolsey.http.web.paging import cut

Row = TypeVar("Row")
Item = TypeVar("Item", bound="ApiAnswer")

NoBody = Literal[""]
Created = Literal[201]
Accepted = Literal[202]
NoContent = Literal[204]
"""Statuses beside 200, as part of what a view says that it returns."""

Timestamp = Annotated[datetime, PlainSerializer(timestamp, return_type=str)]


class ApiAnswer(BaseModel):
    """What a route answers with; made by its fields' names, written by their aliases."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        frozen=True,
        serialize_by_alias=True,
        validate_by_name=True,
        validate_by_alias=False,
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
    found: Sequence[Row],
    limit: int,
    *,
    key: Callable[[Row], str],
    answer: Callable[[Row], Item],
) -> ListAnswer[Item]:
    """Answer with a page of what was `found`; see `paging.cut`."""
    rows, following = cut(found, limit, key=key)
    return ListAnswer(items=[answer(row) for row in rows], next_cursor=following)


def answers_of(view: Callable[..., Any]) -> Mapping[int, type[ApiAnswer] | None]:
    """Read from a view's annotation what it answers with, by status; None stands for no body.

    A view says `-> ApiAnswer`, `-> tuple[ApiAnswer, Literal[201]]`, or a union of those.
    """
    said = view.__annotations__.get("return")
    forms = get_args(said) if get_origin(said) in (Union, UnionType) else (said,)
    found = dict[int, type[ApiAnswer] | None]()
    for form in forms:
        match get_args(form) if get_origin(form) is tuple else (form, Literal[200]):
            case (body, status) if get_origin(status) is Literal:
                (number,) = get_args(status)
                if body == NoBody:
                    found[number] = None
                elif isinstance(body, type) and issubclass(body, ApiAnswer):
                    found[number] = body
    return found
