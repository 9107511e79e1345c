"""Running a program that sends its user to the consent page, with somebody at the browser."""

import re
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import anyio

VISIT: Final = re.compile(r"^https?://\S+/oauth/authorize\?\S+$", re.MULTILINE)


async def run(
    command: Sequence[str],
    cwd: Path,
    *,
    visited: Callable[[str], Awaitable[None]] | None = None,
    env: Mapping[str, str] | None = None,
    seconds: float = 60,
) -> tuple[int, str]:
    """Run a program to its end; at each address that it asks for, somebody comes.

    Answers its exit status and all it said.
    """
    answered, seen = "", set[str]()
    with anyio.fail_after(seconds):
        async with await anyio.open_process(
            command, cwd=cwd, env=env, stderr=subprocess.STDOUT
        ) as process:
            assert process.stdout is not None
            async for part in process.stdout:
                answered += part.decode()
                for address in VISIT.findall(answered.rpartition("\n")[0]):
                    if visited is not None and address not in seen:
                        seen.add(address)
                        await visited(address)
        assert process.returncode is not None
        return process.returncode, answered
