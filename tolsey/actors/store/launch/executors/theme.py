"""The theme: a copy of the service's own, in the colours of the brand, which nobody sees before it is published."""

import hashlib
import json
from dataclasses import replace
from typing import Any, Final

from tolsey.actors.edit import Edit
from tolsey.actors.store.editing import edits
from tolsey.actors.store.launch.executors.catalogue import FEATURED
from tolsey.actors.store.launch.executors.work import (
    Finished,
    LaunchWork,
    ReadShop,
    Taken,
    compare,
    number,
)
from tolsey.actors.store.launch.graph import MilestoneStop
from tolsey.actors.store.launch.texts import standard_texts

MAIN_THEME: Final = "query MainTheme { themes(first: 1, roles: [MAIN]) { nodes { id } } }"
READ_SETTINGS: Final = """
query ThemeSettings($id: ID!, $names: [String!]!) {
  theme(id: $id) {
    files(first: 2, filenames: $names) {
      nodes { filename body { ... on OnlineStoreThemeFileBodyText { content } } }
    }
  }
}
"""
SETTINGS: Final = "config/settings_data.json"
HOME: Final = "templates/index.json"
NO_THEME: Final = MilestoneStop(
    kind="blocked",
    reason="missing_credential",
    detail=(
        "This server has no theme configured: LAUNCH_THEME_URL is not set. Publish a theme in"
        " the Shopify admin, or skip this."
    ),
)
NOT_MADE: Final = "0"
"""The number that a dry run shows of a theme that is still to be made."""
PROCESSING: Final = "Shopify is still processing the theme. Run this again in a few minutes."
BROKEN: Final = MilestoneStop(
    kind="permanent",
    reason="theme_failed",
    detail="Shopify couldn't process the theme from LAUNCH_THEME_URL. Ask the operator to check"
    " the file.",
)


def prepare(work: LaunchWork) -> Taken:
    """Make the theme once for each brand kit, wait until it is there, and write the brand into it."""
    if work.theme_url is None:
        return NO_THEME
    name = f"{work.spec['businessName'][:30]} {work.kit['draftHash'][:8]}"
    theme = Edit(kind=edits.THEME, ids=(name,), wanted={"extra": {"source": work.theme_url}})
    found = yield from compare(work, [theme])
    if found.missing:
        files = _files(work, NOT_MADE, None)
        change = {**files.wanted, "id": NOT_MADE}
        return replace(found.write, follows=[replace(files, change=change)])
    (made,) = found.things
    main = yield ReadShop(document=MAIN_THEME)
    before = next((one["id"] for one in main["themes"]["nodes"]), None)
    if made is None:
        # What we made and somebody took away stays away.
        return Finished(result={"themeId": None, "note": "merchant_edit"})
    if made["processing"] or made["processingFailed"]:
        return BROKEN if made["processingFailed"] else work.processing(PROCESSING)
    asked = {"id": made["id"], "names": [SETTINGS]}
    read = yield ReadShop(document=READ_SETTINGS, variables=asked)
    kept = next((one["body"].get("content") for one in read["theme"]["files"]["nodes"]), None)
    files = _files(work, number(made["id"]), kept)
    branded = yield from compare(work, [files], may_set=lambda _: True)
    if branded.missing:
        return branded.write
    known = work.results.get(work.milestone, {}).get("mainThemeId")
    result = {"themeId": made["id"], "themeName": name, "mainThemeId": known or before}
    return Finished(
        result={**result, "wrote": work.wrote([files])},
        facts={"storefront.theme_id": number(made["id"])},
    )


def _files(work: LaunchWork, theme_id: str, kept: str | None) -> Edit:
    """Say what is to stand in the settings and on the home page; what else the theme sets stays."""
    files = {SETTINGS: _settings(work, kept), HOME: _home(work)}
    digests = {name: _digest(text) for name, text in files.items()}
    return Edit(
        kind=edits.THEME_FILES,
        ids=(theme_id,),
        wanted={"files": digests, "extra": {"texts": files}},
    )


def _digest(text: str) -> str:
    """Name a text as the platform does, to be compared and for no secret."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _settings(work: LaunchWork, kept: str | None) -> str:
    """Set the colours, fonts and marks of the brand among the theme's own settings."""
    told: dict[str, Any] = json.loads(kept) if kept else {}
    current = told.get("current")
    # A theme names a preset there until somebody sets something.
    current = dict(current) if isinstance(current, dict) else {}
    palette, fonts = work.kit["palette"], work.kit["fonts"]
    scheme = {
        "background": palette["background"],
        "text": palette["text"],
        "button": palette["primary"],
        "button_label": palette["background"],
        "secondary_button_label": palette["accent"],
    }
    schemes = dict(current.get("color_schemes") or {})
    first = next(iter(schemes), "scheme-1")
    old = (schemes.get(first) or {}).get("settings") or {}
    schemes[first] = {"settings": {**old, **scheme}}
    current |= {
        "color_schemes": schemes,
        "type_header_font": _font(fonts["heading"]),
        "type_body_font": _font(fonts["body"]),
        **_marks(work),
    }
    return json.dumps({**told, "current": current}, indent=2, sort_keys=True)


def _font(name: str) -> str:
    return f"{name.lower().replace(' ', '_')}_n4"


def _marks(work: LaunchWork) -> dict[str, str]:
    """Name the files of the brand, where they were uploaded."""
    names = {"wordmark": "logo", "mark": "favicon"}
    uploaded = work.results.get("brand.assets", {}).get("names", {})
    return {
        names[which]: f"shopify://shop_images/{filename}" for which, filename in uploaded.items()
    }


def _home(work: LaunchWork) -> str:
    """Write a home page: what the shop is, and its featured collection."""
    welcome = {
        "type": "rich-text",
        "blocks": {
            "heading": {"type": "heading", "settings": {"heading": work.spec["businessName"]}},
            "text": {
                "type": "text",
                "settings": {
                    "text": standard_texts.html(
                        (standard_texts.TextPart(heading=None, paragraphs=(work.kit["tagline"],)),)
                    )
                },
            },
        },
        "block_order": ["heading", "text"],
        "settings": {},
    }
    featured = {
        "type": "featured-collection",
        "settings": {"collection": FEATURED, "title": "Featured", "products_to_show": 8},
    }
    sections = {"welcome": welcome, "featured": featured}
    return json.dumps({"sections": sections, "order": list(sections)}, indent=2)
