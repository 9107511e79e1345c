"""Orders as they are edited: notes and tags."""

from typing import Any, Final

from tolsey.actors.edit import Edit
from tolsey.http.clients.commerce import shapes
from tolsey.http.clients.commerce.edits.products import listed_tags
from tolsey.http.clients.commerce.edits.way import Body, EditDocument, NumberedWay, id_of

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


class NoteWay(NumberedWay):
    """The note."""

    kind, looks, at = "Order", LOOK_AT_NOTE, "order"

    def read(self, value: object) -> dict[str, Any]:
        """Read the note."""
        return {"note": shapes.mapping(value, "an order").get("note") or ""}

    def change(self, edit: Edit, key: str) -> EditDocument:
        """Send the whole note."""
        del key
        asked = {"id": id_of("Order", edit), "note": (edit.change or {})["note"]}
        return EditDocument(text=CHANGE_NOTE, variables={"input": asked}, field="orderUpdate")


class TagsWay(NumberedWay):
    """The tags."""

    kind, looks, at = "Order", LOOK_AT_TAGS, "order"

    def read(self, value: object) -> dict[str, Any]:
        """Read the tags."""
        tags = shapes.mapping(value, "an order").get("tags")
        return {"tags": listed_tags(tags, "the tags of an order")}

    def change(self, edit: Edit, key: str) -> EditDocument:
        """Send those that are new."""
        del key
        asked = {"id": id_of("Order", edit), "tags": list((edit.change or {})["tags"])}
        return EditDocument(text=ADD_TAGS, variables=asked, field="tagsAdd")

    def made(self, edit: Edit, payload: Body) -> dict[str, Any]:
        """Read the tags."""
        del edit
        return self.read(payload.get("node"))
