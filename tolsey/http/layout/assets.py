"""The stylesheet and the scripts of our pages: files beside this module, each under the hash of its content."""

import hashlib
from importlib import resources
from typing import Final

from quart import Blueprint, Response

from tolsey.actors.refusals import NotFound
from tolsey.http.web.access import public

TYPES: Final = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
FOR_GOOD: Final = "public, max-age=31536000, immutable"
FOLDER: Final = "/assets/"


def _addressed() -> dict[str, bytes]:
    found = {}
    for file in resources.files(__package__).joinpath("assets").iterdir():
        stem, _, kind = file.name.rpartition(".")
        content = file.read_bytes()
        found[f"{stem}.{hashlib.sha256(content).hexdigest()[:16]}.{kind}"] = content
    return found


CONTENTS: Final = _addressed()


def address_of(stem: str) -> str:
    """Give the address of an asset, such as `style`, as this release has it."""
    (found,) = (name for name in CONTENTS if name.startswith(f"{stem}."))
    return FOLDER + found


def content_of(stem: str) -> bytes:
    """Give an asset that a page holds in itself."""
    return CONTENTS[address_of(stem).removeprefix(FOLDER)]


STYLE_ADDRESS: Final = address_of("style")

routes = Blueprint("assets", __name__)


@routes.get(f"{FOLDER}<name>")
@public
async def asset(name: str) -> Response:
    """Answer with an asset; one of another release has another address, and is not here."""
    content = CONTENTS.get(name)
    if content is None:
        raise NotFound("This page or endpoint doesn't exist. Check the address.")
    kind = TYPES[name.rpartition(".")[2]]
    return Response(content, content_type=kind, headers={"Cache-Control": FOR_GOOD})
