"""What one account of the processor holds: objects by kind and id, and how they are listed."""

import random
import string
from collections.abc import Callable, Iterator
from typing import Any

from tolsey.sandbox.payments.account.refused import missing_object

Obj = dict[str, Any]
_LETTERS = string.ascii_letters + string.digits
_PAGE = 10


class Books:
    """The objects of one account, oldest first within a kind."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)  # noqa: S311 - repeatable ids, no secret
        self._kinds: dict[str, dict[str, Obj]] = {}

    def new_id(self, prefix: str, length: int = 24) -> str:
        """Make an id of the processor's form."""
        return f"{prefix}_" + "".join(self._random.choices(_LETTERS, k=length))

    def add(self, obj: Obj) -> Obj:
        """Keep a new object under its kind."""
        self._kinds.setdefault(obj["object"], {})[obj["id"]] = obj
        return obj

    def get(self, kind: str, id: str, param: str | None = None) -> Obj:
        """Give an object; `param` names the parameter that held the id, if it was not the path."""
        found = self._kinds.get(kind, {}).get(id)
        if found is None:
            raise missing_object(kind, id, param)
        return found

    def find(self, id: str) -> Obj | None:
        """Give the object with an id, whatever its kind."""
        return next((held[id] for held in self._kinds.values() if id in held), None)

    def drop(self, kind: str, id: str) -> None:
        """Forget an object."""
        self._kinds[kind].pop(id)

    def each(self, kind: str) -> Iterator[Obj]:
        """Give the objects of a kind, oldest first; the books may change meanwhile."""
        return iter(list(self._kinds.get(kind, {}).values()))

    def page(
        self,
        kind: str,
        params: Obj,
        url: str,
        keep: Callable[[Obj], bool] = lambda _: True,
    ) -> Obj:
        """Give one page of a list, newest first, filtered by `created` and `keep`."""
        found = [o for o in self.each(kind) if keep(o) and _created(o, params.get("created"))]
        return page_of(found[::-1], params, url)


def page_of(found: list[Obj], params: Obj, url: str) -> Obj:
    """Cut a page out of a whole list by `limit`, `starting_after` and `ending_before`."""
    limit = min(max(int(params.get("limit", _PAGE)), 1), 100)
    ids = [obj["id"] for obj in found]
    after, before = params.get("starting_after"), params.get("ending_before")
    for name, cursor in (("starting_after", after), ("ending_before", before)):
        if cursor and cursor not in ids:
            raise missing_object("object", cursor, name)
    if before:
        rest = found[: ids.index(before)]
        data, more = rest[-limit:], len(rest) > limit
    else:
        rest = found[ids.index(after) + 1 :] if after else found
        data, more = rest[:limit], len(rest) > limit
    return {"object": "list", "data": data, "has_more": more, "url": url}


def whole(data: list[Obj], url: str) -> Obj:
    """Wrap all of a list that belongs to an object."""
    return {"object": "list", "data": data, "has_more": False, "url": url}


def merged(metadata: dict[str, str], given: Any) -> dict[str, str]:
    """Give metadata after an update: empty values unset a key, an empty string unsets all."""
    if given is None:
        return metadata
    if given == "":
        return {}
    both = {**metadata, **given}
    return {name: value for name, value in both.items() if value != ""}


def _created(obj: Obj, asked: Any) -> bool:
    if asked is None:
        return True
    at = obj["created"]
    if isinstance(asked, int):
        return bool(at == asked)
    bounds = {
        "gte": lambda bound: at >= bound,
        "gt": lambda bound: at > bound,
        "lte": lambda bound: at <= bound,
        "lt": lambda bound: at < bound,
    }
    return all(bounds[name](bound) for name, bound in asked.items())
