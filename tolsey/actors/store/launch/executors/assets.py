"""The files of the brand: its logo and the small mark for browsers."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from tolsey.actors.edit import Edit
from tolsey.actors.ports import Upload
from tolsey.actors.store.editing import edits
from tolsey.actors.store.editing.kinds.setup import READY, UNDER_WAY
from tolsey.actors.store.launch.executors.work import (
    Finished,
    LaunchWork,
    LookAtAll,
    PutUp,
    Taken,
    planned,
)
from tolsey.actors.store.launch.graph import MilestoneStop

FILES: Final = {"wordmark": "brand.logo_file_id", "mark": "brand.favicon_file_id"}
PROCESSING: Final = "Shopify is still processing a file. Run this again in a few minutes."


def upload(work: LaunchWork) -> Taken:
    """Upload each file once, under a name that says what is in it, and wait until the platform has it."""
    due = list[tuple[Edit, Mapping[str, Any]]]()
    found, names = dict[str, str](), dict[str, str]()
    is_waiting = False
    logos = [(logo, logo["svg"].encode()) for logo in work.kit["logos"]]
    wanted = [
        Edit(kind=edits.FILE, ids=(_named(logo, content),), wanted={"alt": logo["alt"]})
        for logo, content in logos
    ]
    seen = yield LookAtAll(wanted)
    for (logo, content), edit, facts in zip(logos, wanted, seen, strict=True):
        (filename,), file = edit.ids, facts["file"]
        if file is None and not work.was_written(edit):
            put = Upload(filename=filename, mime="image/svg+xml", content=content)
            source = yield PutUp(put)
            due.append((replace(edit, wanted={**edit.wanted, "source": source}), facts))
        elif file is not None and file["status"] in UNDER_WAY:
            is_waiting = True
        elif file is not None and file["status"] != READY:
            return MilestoneStop(
                kind="permanent",
                reason="file_failed",
                detail=f"Shopify couldn't process {filename}. Check the file, then run this again.",
            )
        elif file is not None:
            names[logo["name"]] = filename
            found[logo["name"]] = f"gid://shopify/{file['kind']}/{file['id']}"
    if due:
        return planned(due)
    if is_waiting:
        return work.processing(PROCESSING)
    facts = {FILES[name]: id for name, id in found.items()}
    # What we uploaded and somebody deleted stays deleted.
    return Finished(result={"files": found, "names": names}, facts=facts)


def _named(logo: Mapping[str, Any], content: bytes) -> str:
    return f"{logo['name']}-{hashlib.sha256(content).hexdigest()[:12]}.svg"
