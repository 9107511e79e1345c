"""How things are found, made and set that differ only in their documents and fields."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from tolsey.actors.edit import Edit
from tolsey.http.clients.commerce import shapes
from tolsey.http.clients.commerce.edits.way import Body, EditDocument, EditWay
from tolsey.http.clients.commerce.queries import gid


class ThingWay(EditWay, ABC):
    """How things of a kind are found, made and set."""

    looks: ClassVar[str]
    """The document that finds one."""
    makes: ClassVar[str] = ""
    sets: ClassVar[str] = ""
    """The documents that make one where there is none, and set one that is there."""
    at: ClassVar[str]
    """Where the thing is in what these answer."""
    fields: ClassVar[tuple[str, ...]]
    """What is read of one, by the platform's names."""

    @abstractmethod
    def asked(self, edit: Edit) -> Body:
        """Say what a look is asked with."""

    @abstractmethod
    def node(self, edit: Edit, data: Body) -> Any:
        """Take the thing of what a look was answered; None where there is none."""

    @abstractmethod
    def sent(self, edit: Edit, change: Body, key: str) -> Body:
        """Say what a change is asked with; of a new thing the `id` is None."""

    def look(self, edit: Edit) -> EditDocument:
        """Ask for it."""
        return EditDocument(text=self.looks, variables=self.asked(edit))

    def found(self, edit: Edit, data: Body) -> dict[str, Any]:
        """Read what stands there, which may be nothing."""
        node = self.node(edit, data)
        return {"found": None if node is None else self.read(shapes.mapping(node, edit.kind))}

    def change(self, edit: Edit, key: str) -> EditDocument:
        """Ask for a new one, or for the changes of one that is there."""
        change = edit.change or {}
        text = self.makes if change["id"] is None else self.sets
        field = text.split("{", 1)[1].split("(", 1)[0].strip()
        return EditDocument(text=text, variables=self.sent(edit, change, key), field=field)

    def made(self, edit: Edit, payload: Body) -> dict[str, Any]:
        """Read what stands there then."""
        return {"found": self.read(shapes.mapping(payload.get(self.at), edit.kind))}

    def read(self, node: Body) -> dict[str, Any]:
        """Read the facts of a thing."""
        return {"id": node.get("id"), **{name: node.get(name) for name in self.fields}}


def texts(change: Body, *names: str) -> dict[str, Any]:
    """Take those of some values that are to be sent."""
    return {name: change[name] for name in names if name in change}


def global_id(kind: str, number: str) -> str:
    """Write a global id of a number as it is kept."""
    return gid(kind, int(number))
