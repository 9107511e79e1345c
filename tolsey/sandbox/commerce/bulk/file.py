"""The file of a bulk operation: a JSON line for every node, children after or beside parents."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import IO, Any

import orjson

from tolsey.sandbox.commerce.bulk.plan import Emitter
from tolsey.sandbox.commerce.shop.bulk import BulkOperation

_BATCH = 100


def write(operation: BulkOperation, file: IO[bytes], emitters: Sequence[Emitter]) -> None:
    """Write the lines of every connection and count them."""
    for emitter in emitters:
        roots = iter(emitter.getter(None, emitter.call).nodes)
        while batch := list(islice(roots, _BATCH)):
            lines = list(_lines(batch, emitter, group=operation.group_objects))
            file.writelines(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines)
            operation.object_count += len(lines)
            operation.root_object_count += len(batch)
    file.flush()
    operation.file_size = file.tell()


def _lines(batch: Sequence[Any], emitter: Emitter, *, group: bool) -> Iterator[dict[str, Any]]:
    """Give the lines of some root objects; ungrouped children come after all their parents."""
    later: list[dict[str, Any]] = []
    for node in batch:
        line = emitter.project(node)
        yield line
        for child in emitter.children:
            nested = _nested(node, line["id"], child)
            if group:
                yield from nested
            else:
                later.extend(nested)
    yield from later


def _nested(parent: Any, parent_id: str, emitter: Emitter) -> Iterator[dict[str, Any]]:
    for node in emitter.getter(parent, emitter.call).nodes:
        line = emitter.project(node)
        line["__parentId"] = parent_id
        yield line
        for child in emitter.children:
            yield from _nested(node, line["id"], child)
