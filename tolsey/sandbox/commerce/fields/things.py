"""Things that are kept as they are sent: the schema says which fields one has, and a row of a table what makes it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import md5
from typing import Any

from graphql import GraphQLObjectType, get_named_type, is_list_type, is_non_null_type

from tolsey.sandbox.clock import instant
from tolsey.sandbox.commerce.fields.mutations import Scope, Wrong, mutation, number
from tolsey.sandbox.commerce.fields.reads import need
from tolsey.sandbox.commerce.query.pages import Page, listed
from tolsey.sandbox.commerce.query.projection import Call, Getter
from tolsey.sandbox.commerce.query.schema import own_schema
from tolsey.sandbox.commerce.query.search import compile_search
from tolsey.sandbox.commerce.shop.files import ThemeText
from tolsey.sandbox.commerce.shop.state import Shop

Thing = dict[str, Any]
NAVIGATION = "write_online_store_navigation"
EMPTY: Mapping[str, Any] = {"Boolean": False, "String": "", "Int": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a mutation keeps: things of a type, answered under a name.

    `by` are the fields by which it finds the one it changes; `alone` those of which no two things have the same.
    """

    kind: str
    scope: Scope
    at: str
    by: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    many: str | None = None
    """The argument that holds a list of things."""


def _of_owner(call: Call) -> str:
    """Name what writes a field of something: the owner's own scope."""
    owner = call.args["metafields"][0]["ownerId"]
    return "write_content" if "/Page/" in owner else "write_products"


TABLE: Mapping[str, Kept] = {
    "consentPolicyUpdate": Kept(
        kind="ConsentPolicy",
        scope="write_privacy_settings",
        at="updatedPolicies",
        by=("countryCode", "regionCode"),
        many="consentPolicies",
    ),
    "menuCreate": Kept(kind="Menu", scope=NAVIGATION, at="menu", alone=("handle",)),
    "menuUpdate": Kept(kind="Menu", scope=NAVIGATION, at="menu", by=("id",)),
    "metafieldsSet": Kept(
        kind="Metafield",
        scope=_of_owner,
        at="metafields",
        by=("ownerId", "namespace", "key"),
        many="metafields",
    ),
    "segmentCreate": Kept(kind="Segment", scope="write_customers", at="segment", alone=("name",)),
    "shopPolicyUpdate": Kept(
        kind="ShopPolicy", scope="write_legal_policies", at="shopPolicy", by=("type",)
    ),
    "themeCreate": Kept(kind="OnlineStoreTheme", scope="write_themes", at="theme"),
    "urlRedirectCreate": Kept(
        kind="UrlRedirect", scope=NAVIGATION, at="urlRedirect", alone=("path",)
    ),
    "webPixelCreate": Kept(kind="WebPixel", scope="write_pixels", at="webPixel", alone=("app",)),
}


def keeping(name: str, kept: Kept) -> Getter:
    """Serve a mutation that keeps what it is given."""

    def change(shop: Shop, call: Call) -> dict[str, Any]:
        if kept.many is not None:
            return {kept.at: [_put(shop, call, kept, one) for one in call.args[kept.many]]}
        asked = dict[str, Any]()
        for argument, value in call.args.items():
            asked |= value if isinstance(value, Mapping) else {argument: value}
        return {kept.at: _put(shop, call, kept, asked)}

    return mutation(name, kept.scope)(change)


def _put(shop: Shop, call: Call, kept: Kept, asked: Mapping[str, Any]) -> Thing:
    things = shop.setup.of(kept.kind)
    if kept.kind == "WebPixel" and not shop.setup.has_pixel_extension:
        raise Wrong(["webPixel"], "No web pixel extension found", "NO_EXTENSION")
    for name in kept.alone:
        if any(one.get(name) == asked.get(name) for one in things):
            raise Wrong([name], f"{name.capitalize()} has already been taken", "TAKEN")
    now = instant(call.request.platform.now())
    for one in things:
        if kept.by and all(one.get(name) == asked.get(name) for name in kept.by):
            one |= {**_whole(kept.kind, {**one, **asked}), "updatedAt": now}
            return one
    if kept.by == ("id",):
        raise Wrong(["id"], f"{kept.kind} does not exist", "NOT_FOUND")
    given = {"title": str(asked.get("type", "")).replace("_", " ").capitalize(), **asked}
    id = f"gid://shopify/{kept.kind}/{next(shop.ids)}"
    made = {**_whole(kept.kind, given), "id": id, "createdAt": now, "updatedAt": now}
    if kept.kind == "OnlineStoreTheme":
        made["processing"] = shop.setup.is_slow_with_themes
    things.append(made)
    return made


def _whole(kind: str, given: Mapping[str, Any]) -> Thing:
    """Complete what was given of a thing, and of the things in it."""
    shape = own_schema().type_map[kind]
    assert isinstance(shape, GraphQLObjectType)  # noqa: S101 - things are objects
    found = {**_empty(shape), **given}
    for name, field in shape.fields.items():
        inner = get_named_type(field.type)
        if isinstance(inner, GraphQLObjectType) and isinstance(found[name], list):
            found[name] = [_whole(inner.name, one) for one in found[name]]
    return found


def _empty(shape: GraphQLObjectType) -> Thing:
    """Make a thing that nothing was said of: what its type must have, and no more."""
    found: Thing = {}
    for name, field in shape.fields.items():
        bare = field.type.of_type if is_non_null_type(field.type) else field.type
        must = EMPTY.get(get_named_type(bare).name) if is_non_null_type(field.type) else None
        found[name] = [] if is_list_type(bare) else must
    return found


def _plain(kind: str) -> dict[str, Getter]:
    """Read every field of a type as it is kept, for a type of which some are read otherwise."""
    shape = own_schema().type_map[kind]
    assert isinstance(shape, GraphQLObjectType)  # noqa: S101 - things are objects
    return {name: partial(_kept, name) for name in shape.fields}


def _kept(name: str, thing: Thing, _: Call) -> Any:
    return thing[name]


def _listing(field: str, scope: str, kind: str, search: str | None = None) -> Getter:
    """Serve a list of things, found by one of their fields where it can be searched."""

    def read(_root: Any, call: Call) -> Page:
        things = need(call, field, scope).setup.of(kind)
        if search is not None:
            found = compile_search(call.args.get("query"), {search: lambda one: one[search]})
            things = [one for one in things if found.matches(one)]
        return listed(things).page(call.args)

    return read


def _themes(_root: Any, call: Call) -> Page:
    """List themes by roles and names; one that was made is processed by the next look."""
    shop, asked = need(call, "themes", "read_themes"), call.args
    moment = instant(shop.updated_at)
    found = [
        one
        for one in shop.setup.themes
        if one["role"] in (asked.get("roles") or [one["role"]])
        and one["name"] in (asked.get("names") or [one["name"]])
    ]
    page = listed([{"updatedAt": moment, **one} for one in found]).page(asked)
    for one in found:
        one["processing"] = False
    return page


def _theme(_root: Any, call: Call) -> Thing | None:
    shop = need(call, "theme", "read_themes")
    wanted = number(call.args["id"])
    return next((one for one in shop.setup.themes if number(one["id"]) == wanted), None)


def _files(theme: Thing, call: Call) -> Page:
    """List the files of a theme by their names."""
    held = theme.get("files") or {}
    wanted = call.args.get("filenames") or held
    found = [_file(name, held[name]) for name in wanted if name in held]
    return listed(found).page({"first": 50, **call.args})


def _file(name: str, text: str) -> Thing:
    digest = md5(text.encode(), usedforsecurity=False).hexdigest()
    return {"filename": name, "checksumMd5": digest, "body": ThemeText(text)}


@mutation("themeFilesUpsert", "write_themes")
def write_files(shop: Shop, call: Call) -> dict[str, Any]:
    """Write files of a theme, all of them or none."""
    del shop
    theme = _theme(None, Call({"id": call.args["themeId"]}, call.request))
    if theme is None:
        raise Wrong(["themeId"], "Theme does not exist", "NOT_FOUND")
    files = {one["filename"]: one["body"]["value"] for one in call.args["files"]}
    theme["files"] = {**(theme.get("files") or {}), **files}
    return {"upsertedThemeFiles": [_file(*one) for one in files.items()]}


@mutation("fileUpdate", "write_files")
def update_files(shop: Shop, call: Call) -> dict[str, Any]:
    """Say what is in pictures."""
    changed = []
    for place, asked in enumerate(call.args["files"]):
        file = shop.setup.files.get(number(asked["id"]))
        if file is None:
            raise Wrong(["files", str(place), "id"], "File does not exist", "FILE_DOES_NOT_EXIST")
        file.alt = asked.get("alt") or file.alt
        changed.append(file)
    return {"files": changed}


def metafield(kind: str) -> Callable[[Any, Call], Any]:
    """Read a field of something by its name."""

    def read(owner: Any, call: Call) -> Thing | None:
        wanted = (f"gid://shopify/{kind}/{owner.id}", call.args["namespace"], call.args["key"])
        return next(
            (
                one
                for one in call.request.shop.setup.of("Metafield")
                if (one["ownerId"], one["namespace"], one["key"]) == wanted
            ),
            None,
        )

    return read


QUERIES: dict[str, Getter] = {
    "consentPolicy": lambda _r, c: need(c, "consentPolicy", "read_privacy_settings").setup.of(
        "ConsentPolicy"
    ),
    "menus": _listing("menus", "read_online_store_navigation", "Menu"),
    "segments": _listing("segments", "read_customers", "Segment"),
    "theme": _theme,
    "themes": _themes,
    "urlRedirects": _listing(
        "urlRedirects", "read_online_store_navigation", "UrlRedirect", search="path"
    ),
    "webPixel": lambda _r, c: next(
        iter(need(c, "webPixel", "read_pixels").setup.of("WebPixel")), None
    ),
}
MUTATIONS: dict[str, Getter] = {
    **{name: keeping(name, kept) for name, kept in TABLE.items()},
    "fileUpdate": update_files,
    "themeFilesUpsert": write_files,
}
TYPES: dict[str, Mapping[str, Getter]] = {
    "OnlineStoreTheme": {**_plain("OnlineStoreTheme"), "files": _files},
    "OnlineStoreThemeFileBodyText": {"content": lambda t, _: t.content},
}
PAGES = ("Menu", "Segment", "UrlRedirect", "OnlineStoreThemeFile")
"""What is listed, and only by `nodes`."""
