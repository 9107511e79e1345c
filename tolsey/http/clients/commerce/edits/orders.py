"""Orders as they are edited: notes and tags."""

from typing import Any, Final

from tolsey.actors.edit import Edit
from tolsey.http.clients.commerce import shapes
from tolsey.http.clients.commerce.edits.products import listed_tags
from tolsey.http.clients.commerce.edits.way import Body, EditDocument, EditWay, id_of

LOOK_AT_NOTE: Final = "query LookAtNote($id: ID!) { order(id: $id) { note } }"
LOOK_AT_TAGS: Final = "query LookAtTags($id: ID!) { order(id: $id) { tags } }"
CHANGE_NOTE: Final = """
mutation ChangeNote($input: OrderInput!) {
  orderUpdate(input: $input) { order { note } userErrors { field message } }
}
"""
ADD_TAGS: Final = """
mutation AddTags($id: ID!, $tags: [String!]!) {
  tagsAdd(id: $id, tags: $tags) { node { ... on Order { tags } } userErrors { field message } }
}
"""


class NoteWay(EditWay):
    """The note."""

    def look(self, edit: Edit) -> EditDocument:
        """Ask for the note."""
        asked = {"id": id_of("Order", edit)}
        return EditDocument(text=LOOK_AT_NOTE, variables=asked)

    def found(self, edit: Edit, data: Body) -> dict[str, Any] | None:
        """Read the note."""
        del edit
        return None if data.get("order") is None else _note(data["order"])

    def change(self, edit: Edit, key: str) -> EditDocument:
        """Send the whole note."""
        del key
        asked = {"id": id_of("Order", edit), "note": (edit.change or {})["note"]}
        return EditDocument(text=CHANGE_NOTE, variables={"input": asked}, field="orderUpdate")

    def made(self, edit: Edit, payload: Body) -> dict[str, Any]:
        """Read the note."""
        del edit
        return _note(payload.get("order"))


class TagsWay(EditWay):
    """The tags."""

    def look(self, edit: Edit) -> EditDocument:
        """Ask for the tags."""
        asked = {"id": id_of("Order", edit)}
        return EditDocument(text=LOOK_AT_TAGS, variables=asked)

    def found(self, edit: Edit, data: Body) -> dict[str, Any] | None:
        """Read the tags."""
        del edit
        return None if data.get("order") is None else _tags(data["order"])

    def change(self, edit: Edit, key: str) -> EditDocument:
        """Send those that are new."""
        del key
        asked = {"id": id_of("Order", edit), "tags": list((edit.change or {})["tags"])}
        return EditDocument(text=ADD_TAGS, variables=asked, field="tagsAdd")

    def made(self, edit: Edit, payload: Body) -> dict[str, Any]:
        """Read the tags."""
        del edit
        return _tags(payload.get("node"))


def _note(value: object) -> dict[str, Any]:
    return {"note": shapes.mapping(value, "an order").get("note") or ""}


def _tags(value: object) -> dict[str, Any]:
    tags = shapes.mapping(value, "an order").get("tags")
    return {"tags": listed_tags(tags, "the tags of an order")}
