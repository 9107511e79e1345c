"""Pages, policies, menus and themes."""

from typing import Any, Final

from tolsey.actors.edit import Edit
from tolsey.http.clients.commerce import shapes
from tolsey.http.clients.commerce.edits.drafts import LOOK_AT_PAGE, PAGE
from tolsey.http.clients.commerce.edits.things.thing import ThingWay, global_id, texts
from tolsey.http.clients.commerce.edits.way import Body, nodes, tail

NEW_PAGE: Final = f"""
mutation NewPage($page: PageCreateInput!) {{
  pageCreate(page: $page) {{ page {{ {PAGE} }} userErrors {{ code field message }} }}
}}
"""
SET_PAGE: Final = f"""
mutation SetPage($id: ID!, $page: PageUpdateInput!) {{
  pageUpdate(id: $id, page: $page) {{ page {{ {PAGE} }} userErrors {{ code field message }} }}
}}
"""
POLICY: Final = "id type body"
FIND_POLICIES: Final = f"""
query FindPolicies {{ shop {{ shopPolicies {{ {POLICY} }} }} }}
"""
SET_POLICY: Final = f"""
mutation SetPolicy($policy: ShopPolicyInput!) {{
  shopPolicyUpdate(shopPolicy: $policy) {{
    shopPolicy {{ {POLICY} }} userErrors {{ code field message }}
  }}
}}
"""
MENU: Final = "id handle title items { title type resourceId url }"
FIND_MENUS: Final = f"""
query FindMenus {{ menus(first: 25) {{ nodes {{ {MENU} }} }} }}
"""
NEW_MENU: Final = f"""
mutation NewMenu($title: String!, $handle: String!, $items: [MenuItemCreateInput!]!) {{
  menuCreate(title: $title, handle: $handle, items: $items) {{
    menu {{ {MENU} }} userErrors {{ code field message }}
  }}
}}
"""
SET_MENU: Final = f"""
mutation SetMenu($id: ID!, $title: String!, $items: [MenuItemUpdateInput!]!) {{
  menuUpdate(id: $id, title: $title, items: $items) {{
    menu {{ {MENU} }} userErrors {{ code field message }}
  }}
}}
"""
THEME: Final = "id name role processing processingFailed"
FIND_THEMES: Final = f"""
query FindThemes($names: [String!]) {{
  themes(first: 5, names: $names) {{ nodes {{ {THEME} }} }}
}}
"""
NEW_THEME: Final = f"""
mutation NewTheme($source: URL!, $name: String!) {{
  themeCreate(source: $source, name: $name, role: UNPUBLISHED) {{
    theme {{ {THEME} }} userErrors {{ code field message }}
  }}
}}
"""
FIND_THEME_FILES: Final = """
query FindThemeFiles($id: ID!, $names: [String!]!) {
  theme(id: $id) { id files(first: 50, filenames: $names) { nodes { filename checksumMd5 } } }
}
"""
SET_THEME_FILES: Final = """
mutation SetThemeFiles($id: ID!, $files: [OnlineStoreThemeFilesUpsertFileInput!]!) {
  themeFilesUpsert(themeId: $id, files: $files) {
    upsertedThemeFiles { filename checksumMd5 } userErrors { code field message }
  }
}
"""


class CorePageWay(ThingWay):
    """A page by its handle."""

    looks, makes, sets, at = LOOK_AT_PAGE, NEW_PAGE, SET_PAGE, "page"
    fields = ("title", "body", "isPublished")

    def asked(self, edit: Edit) -> Body:
        """Search for the handle: the platform finds no page by it directly."""
        return {"query": f"handle:{edit.ids[0]}"}

    def node(self, edit: Edit, data: Body) -> Any:
        """Take the page of this very handle."""
        pages = nodes(data.get("pages"), "pages")
        return next((one for one in pages if one.get("handle") == edit.ids[0]), None)

    def sent(self, edit: Edit, change: Body, key: str) -> Body:
        """Send a new page, or new texts of one."""
        del key
        page = texts(change, "title", "body")
        if change["id"] is not None:
            return {"id": change["id"], "page": page}
        new = {"handle": edit.ids[0], "isPublished": True, **change.get("extra", {})}
        return {"page": {**page, **new}}


class PolicyWay(ThingWay):
    """A policy by its type; one without a word is none."""

    looks, makes, sets, at = FIND_POLICIES, SET_POLICY, SET_POLICY, "shopPolicy"
    fields = ("type", "body")

    def asked(self, edit: Edit) -> Body:
        """Ask for all of them."""
        del edit
        return {}

    def node(self, edit: Edit, data: Body) -> Any:
        """Take the one of this type."""
        policies = tail((data.get("shop") or {}).get("shopPolicies"), "policies")
        return next(
            (one for one in policies if one.get("type") == edit.ids[0] and one["body"]), None
        )

    def sent(self, edit: Edit, change: Body, key: str) -> Body:
        """Send its text."""
        del key
        return {"policy": {"type": edit.ids[0], "body": change["body"]}}


class MenuWay(ThingWay):
    """A menu by its handle."""

    looks, makes, sets, at = FIND_MENUS, NEW_MENU, SET_MENU, "menu"
    fields = ("title", "items")

    def asked(self, edit: Edit) -> Body:
        """Ask for all of them."""
        del edit
        return {}

    def node(self, edit: Edit, data: Body) -> Any:
        """Take the one of this handle."""
        menus = nodes(data.get("menus"), "menus")
        return next((one for one in menus if one.get("handle") == edit.ids[0]), None)

    def sent(self, edit: Edit, change: Body, key: str) -> Body:
        """Send its entries, all of them."""
        del key
        filled = [
            {name: value for name, value in one.items() if value is not None}
            for one in change["items"]
        ]
        which = {"handle": edit.ids[0]} if change["id"] is None else {"id": change["id"]}
        return {"title": change["title"], "items": filled, **which}

    def read(self, node: Body) -> dict[str, Any]:
        """Read the entries by what they lead to: the platform writes the address of what has an id itself."""
        items = [
            {**one, "url": None if one.get("resourceId") else one.get("url")}
            for one in tail(node.get("items"), "entries of a menu")
        ]
        return {"id": node.get("id"), "title": node.get("title"), "items": items}


class ThemeWay(ThingWay):
    """A theme by its name."""

    looks, makes, at = FIND_THEMES, NEW_THEME, "theme"
    fields = ("name", "role", "processing", "processingFailed")

    def asked(self, edit: Edit) -> Body:
        """Name it."""
        return {"names": [edit.ids[0]]}

    def node(self, edit: Edit, data: Body) -> Any:
        """Take the theme of this very name."""
        themes = nodes(data.get("themes"), "themes")
        return next((one for one in themes if one.get("name") == edit.ids[0]), None)

    def sent(self, edit: Edit, change: Body, key: str) -> Body:
        """Say where the platform fetches it."""
        del key
        return {"name": edit.ids[0], "source": change["extra"]["source"]}


class ThemeFilesWay(ThingWay):
    """Files of a theme by their names."""

    looks, sets, at = FIND_THEME_FILES, SET_THEME_FILES, "upsertedThemeFiles"
    fields = ()

    def asked(self, edit: Edit) -> Body:
        """Name the files that are wanted."""
        return {
            "id": global_id("OnlineStoreTheme", edit.ids[0]),
            "names": sorted(edit.wanted["files"]),
        }

    def node(self, edit: Edit, data: Body) -> Any:
        """Take the theme."""
        del edit
        return data.get("theme")

    def sent(self, edit: Edit, change: Body, key: str) -> Body:
        """Send the whole files."""
        del key
        files = [
            {"filename": name, "body": {"type": "TEXT", "value": text}}
            for name, text in change["extra"]["texts"].items()
        ]
        return {"id": global_id("OnlineStoreTheme", edit.ids[0]), "files": files}

    def made(self, edit: Edit, payload: Body) -> dict[str, Any]:
        """Read the digests of what was written."""
        written = tail(payload.get(self.at), "files of a theme")
        return {"found": {"id": (edit.change or {})["id"], "files": _digests(written)}}

    def read(self, node: Body) -> dict[str, Any]:
        """Read the digest of each file."""
        files = nodes(node.get("files"), "files of a theme")
        return {"id": node.get("id"), "files": _digests(files)}


def _digests(files: list[Body]) -> dict[str, Any]:
    return {
        shapes.text(one.get("filename"), "the name of a file"): one.get("checksumMd5")
        for one in files
    }
