"""What a request to the processor is made of, and how one is found."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tolsey.sandbox.payments.account.books import Obj
from tolsey.sandbox.payments.account.merchant import Merchant
from tolsey.sandbox.payments.account.refused import not_built

_PAGING = frozenset({"limit", "starting_after", "ending_before", "created", "expand"})


@dataclass(frozen=True, slots=True)
class Call:
    """One checked request of a merchant."""

    merchant: Merchant
    params: Obj
    id: str = ""


@dataclass(frozen=True, slots=True)
class Route:
    """A method and a path, whose `{id}` is any id, with the type that checks its parameters.

    `plays` names the parameters that have an effect here; any other is refused, not ignored.
    """

    method: str
    path: str
    type_name: str
    permission: str
    run: Callable[[Call], Obj]
    plays: frozenset[str] = field(default=frozenset())

    def match(self, method: str, path: str) -> str | None:
        """Give the id in the path, or None if the request is another one."""
        mine, asked = self.path.split("/"), path.split("/")
        if method != self.method or len(mine) != len(asked):
            return None
        pairs = list(zip(mine, asked, strict=True))
        if any(part not in ("{id}", given) for part, given in pairs):
            return None
        return next((given for part, given in pairs if part == "{id}"), "")

    @property
    def needed(self) -> str:
        """Name the permission that a restricted key must hold."""
        return f"{self.permission}_{'read' if self.method == 'GET' else 'write'}"

    def refuse_unplayed(self, params: Obj) -> None:
        """Refuse a parameter that the processor knows and this stand-in has no effect for."""
        for name in params:
            if name not in self.plays and name not in _PAGING:
                raise not_built(f"`{name}` of {self.method} {self.path}", name)


def plays(names: str) -> frozenset[str]:
    """Read the names of the parameters that a route plays."""
    return frozenset(names.split())


def listed(kind: str, path: str, *same: str) -> Callable[[Call], Obj]:
    """Make the handler that lists a kind, filtered by fields that must be the same."""

    def run(call: Call) -> Obj:
        wanted = {name: call.params[name] for name in same if name in call.params}

        def keep(obj: Obj) -> bool:
            return all(obj.get(name) == value for name, value in wanted.items())

        return call.merchant.books.page(kind, call.params, path, keep)

    return run


def retrieved(kind: str) -> Callable[[Call], Obj]:
    """Make the handler that gives one object of a kind."""

    def run(call: Call) -> Obj:
        return call.merchant.books.get(kind, call.id)

    return run
