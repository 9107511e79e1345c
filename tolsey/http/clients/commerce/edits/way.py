"""What each kind of edit says of how its things are read and changed; documents are of Admin API 2026-07."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

from tolsey.actors.edit import Edit
from tolsey.http.clients.commerce import shapes
from tolsey.http.clients.commerce.queries import gid
from tolsey.storage.records.money.currencies import in_units, to_minor

Body = Mapping[str, Any]
"""An object of an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditDocument:
    """A document as it is sent; the `field` of a mutation is where its answer is."""

    text: str
    variables: Body
    field: str = ""


class EditWay(ABC):
    """How things of a kind are read, and changed."""

    @abstractmethod
    def look(self, edit: Edit) -> EditDocument:
        """Ask for a thing as it is now."""

    @abstractmethod
    def found(self, edit: Edit, data: Body) -> dict[str, Any] | None:
        """Read the thing of what `look` was answered; None when the shop has none."""

    @abstractmethod
    def change(self, edit: Edit, key: str) -> EditDocument:
        """Ask for the planned change."""

    @abstractmethod
    def made(self, edit: Edit, payload: Body) -> dict[str, Any]:
        """Read what the thing is then of what `change` was answered."""


class NumberedWay(EditWay, ABC):
    """How things are read that the platform finds by their number."""

    kind: ClassVar[str]
    """What a thing is in the platform's global ids."""
    looks: ClassVar[str]
    """The document that asks for one by its `id`."""
    at: ClassVar[str]
    """Where the thing is in what these answer."""

    @abstractmethod
    def read(self, value: object) -> dict[str, Any]:
        """Read the facts of a thing."""

    def look(self, edit: Edit) -> EditDocument:
        """Ask for it."""
        return EditDocument(text=self.looks, variables={"id": id_of(self.kind, edit)})

    def found(self, edit: Edit, data: Body) -> dict[str, Any] | None:
        """Read it; None where the shop has none of that number."""
        del edit
        return None if data.get(self.at) is None else self.read(data[self.at])

    def made(self, edit: Edit, payload: Body) -> dict[str, Any]:
        """Read what it is then."""
        del edit
        return self.read(payload.get(self.at))


def id_of(kind: str, edit: Edit) -> str:
    """Write the global id of the thing that is edited."""
    return gid(kind, int(edit.ids[0]))


def number_of(value: object, what: str) -> str:
    """Take the number of a global id."""
    return shapes.text(value, what).rpartition("/")[2]


def tail(items: object, what: str) -> list[Body]:
    """Take a list of objects."""
    if not isinstance(items, list):
        raise shapes.Misshapen(what)
    return [shapes.mapping(one, what) for one in items]


def nodes(connection: object, what: str) -> list[Body]:
    """Take the objects of one page of a list."""
    return tail(shapes.mapping(connection, what).get("nodes"), what)


def pair(written: object, currency: str, what: str) -> dict[str, Any]:
    """Take an amount in minor units of its currency."""
    try:
        minor = to_minor(Decimal(str(written)), currency)
    except ArithmeticError:
        raise shapes.Misshapen(what) from None
    return {"amount": minor, "currency": currency}


def units(amount: Mapping[str, Any]) -> str:
    """Write an amount as the platform takes it."""
    return f"{in_units(amount['amount'], amount['currency']):f}"
