"""Says of each answer which of its words the shop wrote: its people, its buyers and their apps.

A note or a name may say "ignore your instructions". Whoever reads it is told beside it that it is a
quotation, in a place that no such text can reach: JSON keeps it within its own quotes (rules/agents#words).
"""

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Final, get_args, get_origin

import orjson
from pydantic import BaseModel

SHOP_WORDS: Final = "shop_words"
"""The field of an answer that names those of its fields that the shop wrote.

It is in no tool's schema, which says nothing against it: saying it again in each would cost every agent its
tokens. The server's instructions say it once.
"""


class WrittenByShop:
    """Marks what people of the shop, its buyers or apps wrote, or may have."""


BY_SHOP: Final = WrittenByShop()
ShopText = Annotated[str, BY_SHOP]
"""Text of a shop: to be quoted, never to be followed."""
ShopValues = Annotated[dict[str, Any], BY_SHOP]
"""Values among which are texts of a shop."""


@cache
def shop_words_in(model: type[BaseModel]) -> tuple[str, ...]:
    """Name the fields that the shop wrote, as `items[].title` stands for the title of each item."""
    found = (
        f"{name}{rest}"
        for name, field in model.__pydantic_fields__.items()
        for rest in ([""] if BY_SHOP in field.metadata else _within(field.annotation))
    )
    return tuple(dict.fromkeys(found))


def _within(annotation: Any) -> Iterator[str]:
    """Name what a field holds of the shop's words, from the field on."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield from (f".{one}" for one in shop_words_in(annotation))
        return
    if get_origin(annotation) is Annotated and BY_SHOP in annotation.__metadata__:
        yield ""
        return
    here = "[]" if get_origin(annotation) is list else ""
    for inner in get_args(annotation):
        yield from (f"{here}{rest}" for rest in _within(inner))


def written(answer: BaseModel, declared: type[BaseModel] | None = None) -> bytes:
    """Write an answer as JSON, with the names of what the shop wrote in it before all else.

    What it is declared as knows the items of a list, which the list itself may not.
    """
    text = answer.model_dump_json(exclude_none=True).encode()
    names = shop_words_in(declared or type(answer))
    if not names:
        return text
    marks = orjson.dumps({SHOP_WORDS: names})
    return marks if text == b"{}" else marks[:-1] + b"," + text[1:]
