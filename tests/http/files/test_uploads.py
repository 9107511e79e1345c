"""A file that comes faster than it is read waits at its sender, and is as large as its route takes."""

from typing import Any

import anyio
import anyio.lowlevel

from tolsey.http.app import Application
from tolsey.http.files.uploads import AHEAD_BYTES, upload

MIB = 1024 * 1024
SENT = 8


async def test_no_more_of_an_upload_is_taken_than_its_reader_keeps_up_with() -> None:
    app = Application("uploads", static_folder=None)
    app.config |= {"BASE_URL": "http://localhost", "MAX_CONTENT_LENGTH": MIB}
    taken, ahead, read = 0, list[int](), 0

    @app.post("/api/marketplace/deals/deal_1/files")
    async def take() -> str:
        nonlocal read
        async for chunk in upload():
            # The sender has every chance to run ahead.
            for _ in range(50):
                await anyio.lowlevel.checkpoint()
            ahead.append(taken - read)
            read += len(chunk)
        return str(read)

    async def receive() -> Any:
        nonlocal taken
        if taken == SENT * MIB:
            await anyio.sleep_forever()
        taken += MIB // 4
        return {
            "type": "http.request",
            "body": b"x" * (MIB // 4),
            "more_body": taken < SENT * MIB,
        }

    answers: list[Any] = []

    async def send(message: Any) -> None:
        answers.append(message)

    scope: Any = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/api/marketplace/deals/deal_1/files",
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"localhost"), (b"content-length", b"%d" % (SENT * MIB))],
        "client": ("127.0.0.1", 1),
        "extensions": {},
    }
    with anyio.fail_after(60):
        await app(scope, receive, send)
    assert (answers[0]["status"], read) == (200, SENT * MIB)
    # What was handed over and what waits for the next look: never the whole of it.
    assert max(ahead) <= 2 * AHEAD_BYTES + MIB
