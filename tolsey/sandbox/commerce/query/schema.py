"""The schemas a document is checked against: the stand-in's own and the published one."""

import gzip
import threading
from functools import lru_cache
from pathlib import Path

import orjson
from graphql import GraphQLSchema, build_client_schema, build_schema

_ROOM = Path(__file__).resolve().parent
PUBLISHED_FOLDER = _ROOM.parents[4] / "shared" / "data" / "commerce" / "graphql"
_PUBLISHED_FILE = "admin_2026-07.introspection.json.gz"
_loading = threading.Lock()


@lru_cache(maxsize=1)
def own_schema() -> GraphQLSchema:
    """Build the schema this stand-in serves."""
    parts = ("schema.graphql", "launch.graphql", "things.graphql")
    return build_schema("\n".join((_ROOM / name).read_text(encoding="utf-8") for name in parts))


@lru_cache(maxsize=2)
def _published(path: Path) -> GraphQLSchema | None:
    if not path.is_file():
        return None
    read = orjson.loads(gzip.decompress(path.read_bytes()))
    # Published as it is: some of its deprecations break a rule the language gained later.
    return build_client_schema(read.get("data", read), assume_valid=True)


def published_schema(folder: Path = PUBLISHED_FOLDER) -> GraphQLSchema | None:
    """Build the platform's published schema where its file is there (takes about half a second)."""
    with _loading:
        return _published(folder / _PUBLISHED_FILE)
