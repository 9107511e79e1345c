"""Collections and pages as they are drafted: what stands under a handle, a new one, and its texts."""

from typing import Any, Final

from tolsey.actors.edit import Edit
from tolsey.http.clients.commerce import shapes
from tolsey.http.clients.commerce.edits.way import (
    Body,
    EditDocument,
    EditWay,
    nodes,
    number_of,
)
from tolsey.http.clients.commerce.queries import gid

COLLECTION: Final = (
    "id handle title descriptionHtml resourcePublicationsCount(onlyPublished: false) { count }"
)
LOOK_AT_COLLECTION: Final = f"""
query LookAtCollection($handle: String!) {{
  collectionByIdentifier(identifier: {{handle: $handle}}) {{ {COLLECTION} }}
}}
"""
CREATE_COLLECTION: Final = f"""
mutation CreateCollection($collection: CollectionCreateInput!) {{
  collectionCreate(collection: $collection) {{
    collection {{ {COLLECTION} }} userErrors {{ field message }}
  }}
}}
"""
CHANGE_COLLECTION: Final = f"""
mutation ChangeCollection($collection: CollectionUpdateInput!) {{
  collectionUpdate(collection: $collection) {{
    collection {{ {COLLECTION} }} userErrors {{ field message }}
  }}
}}
"""
PAGE: Final = "id handle title body isPublished publishedAt"
LOOK_AT_PAGE: Final = f"""
query LookAtPage($query: String!) {{ pages(first: 10, query: $query) {{ nodes {{ {PAGE} }} }} }}
"""
CREATE_PAGE: Final = f"""
mutation CreatePage($page: PageCreateInput!) {{
  pageCreate(page: $page) {{ page {{ {PAGE} }} userErrors {{ code field message }} }}
}}
"""
CHANGE_PAGE: Final = f"""
mutation ChangePage($id: ID!, $page: PageUpdateInput!) {{
  pageUpdate(id: $id, page: $page) {{ page {{ {PAGE} }} userErrors {{ code field message }} }}
}}
"""


class CollectionWay(EditWay):
    """A collection by its handle."""

    def look(self, edit: Edit) -> EditDocument:
        """Ask for what stands under the handle."""
        return EditDocument(text=LOOK_AT_COLLECTION, variables={"handle": edit.ids[0]})

    def found(self, edit: Edit, data: Body) -> dict[str, Any]:
        """Read what stands there, which may be nothing."""
        del edit
        found = data.get("collectionByIdentifier")
        return {"found": None if found is None else _collection(found)}

    def change(self, edit: Edit, key: str) -> EditDocument:
        """Send a new collection, which is in no sales channel before a person adds it, or new texts of one."""
        del key
        sent, id = _texts(edit, "descriptionHtml"), (edit.change or {})["id"]
        if id is None:
            new = {**sent, "handle": edit.ids[0]}
            return EditDocument(
                text=CREATE_COLLECTION, variables={"collection": new}, field="collectionCreate"
            )
        asked = {**sent, "id": gid("Collection", int(id))}
        return EditDocument(
            text=CHANGE_COLLECTION, variables={"collection": asked}, field="collectionUpdate"
        )

    def made(self, edit: Edit, payload: Body) -> dict[str, Any]:
        """Read the collection."""
        del edit
        return {"found": _collection(payload.get("collection"))}


class PageWay(EditWay):
    """A page by its handle."""

    def look(self, edit: Edit) -> EditDocument:
        """Search for the handle: the platform finds no page by it directly."""
        return EditDocument(text=LOOK_AT_PAGE, variables={"query": f"handle:{edit.ids[0]}"})

    def found(self, edit: Edit, data: Body) -> dict[str, Any]:
        """Read the page of this very handle, where there is one."""
        pages = nodes(data.get("pages"), "pages")
        own = next((one for one in pages if one.get("handle") == edit.ids[0]), None)
        return {"found": None if own is None else _page(own)}

    def change(self, edit: Edit, key: str) -> EditDocument:
        """Send a new page, hidden, or new texts of one."""
        del key
        sent, id = _texts(edit, "body"), (edit.change or {})["id"]
        if id is None:
            # Without this word the platform publishes what is new.
            new = {**sent, "handle": edit.ids[0], "isPublished": False}
            return EditDocument(text=CREATE_PAGE, variables={"page": new}, field="pageCreate")
        asked = {"id": gid("Page", int(id)), "page": sent}
        return EditDocument(text=CHANGE_PAGE, variables=asked, field="pageUpdate")

    def made(self, edit: Edit, payload: Body) -> dict[str, Any]:
        """Read the page."""
        del edit
        return {"found": _page(payload.get("page"))}


def _texts(edit: Edit, body: str) -> dict[str, Any]:
    """Write the texts that are wanted as the platform names them."""
    names = {"title": "title", "body_html": body}
    change = edit.change or {}
    return {sent: change[name] for name, sent in names.items() if name in change}


def _collection(value: object) -> dict[str, Any]:
    found = shapes.mapping(value, "a collection")
    channels = shapes.mapping(found.get("resourcePublicationsCount"), "channels of a collection")
    return {
        "id": number_of(found.get("id"), "a collection"),
        "title": found.get("title"),
        "body_html": found.get("descriptionHtml"),
        "is_published": channels.get("count") != 0,
    }


def _page(value: object) -> dict[str, Any]:
    found = shapes.mapping(value, "a page")
    return {
        "id": number_of(found.get("id"), "a page"),
        "title": found.get("title"),
        "body_html": found.get("body"),
        # One that a person gave its day will be seen by itself.
        "is_published": found.get("isPublished") is not False
        or found.get("publishedAt") is not None,
    }
