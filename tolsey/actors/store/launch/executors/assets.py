"""The files of the brand: its logo and the small mark for browsers."""

import hashlib
from typing import Final

from tolsey.actors.edit import Edit
from tolsey.actors.ports import Upload
from tolsey.actors.store.editing import edits
from tolsey.actors.store.editing.kinds.setup import READY, UNDER_WAY
from tolsey.actors.store.launch.executors.work import (
    Finished,
    LaunchWork,
    LookAt,
    PutUp,
    Taken,
    WriteShop,
)
from tolsey.actors.store.launch.graph import MilestoneStop

FILES: Final = {"wordmark": "brand.logo_file_id", "mark": "brand.favicon_file_id"}
PROCESSING: Final = MilestoneStop(
    kind="throttled",
    reason="processing",
    detail="The platform is still at work on a file.",
    wait_seconds=10,
)


def upload(work: LaunchWork) -> Taken:
    """Upload each file once, under a name that says what is in it, and wait until the platform has it."""
    missing, found, names = list[Edit](), dict[str, str](), dict[str, str]()
    is_waiting = False
    for logo in work.kit["logos"]:
        content = logo["svg"].encode()
        digest = hashlib.sha256(content).hexdigest()[:12]
        filename = f"{logo['name']}-{digest}.svg"
        edit = Edit(kind=edits.FILE, ids=(filename,), wanted={"alt": logo["alt"]})
        facts = yield LookAt(edit)
        file = facts["file"]
        if file is None and not work.was_written(edit):
            put = Upload(filename=filename, mime="image/svg+xml", content=content)
            source = yield PutUp(put)
            wanted = {**edit.wanted, "source": source}
            missing.append(Edit(kind=edit.kind, ids=edit.ids, wanted=wanted))
        elif file is not None and file["status"] in UNDER_WAY:
            is_waiting = True
        elif file is not None and file["status"] != READY:
            return MilestoneStop(
                kind="permanent",
                reason="file_failed",
                detail=f"The platform could not process {filename}.",
            )
        elif file is not None:
            names[logo["name"]] = filename
            found[logo["name"]] = f"gid://shopify/{file['kind']}/{file['id']}"
    if missing:
        return WriteShop(missing)
    if is_waiting:
        return PROCESSING
    facts = {FILES[name]: id for name, id in found.items()}
    # What we uploaded and somebody deleted stays deleted.
    return Finished(result={"files": found, "names": names}, facts=facts)
