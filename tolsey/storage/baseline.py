"""Writes the baseline: the schema of all migrations as one script (`python -m tolsey.storage.baseline`).

It is made by the migrations themselves, on the embedded PostgreSQL, and read back by pg_dump. A test
holds a database that was made of it against one that was made of the single files.
"""

import asyncio
import re
import tempfile
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import anyio
import asyncpg

from tolsey.storage.embedded import binaries
from tolsey.storage.embedded.servers import EmbeddedServers
from tolsey.storage.migrate import BASELINE, MIGRATIONS, digest_of, migrate, migrations

ROWS: Final = """
INSERT INTO slot_epochs (slot) SELECT generate_series(0, 1023);
INSERT INTO deployment DEFAULT VALUES;
"""
"""The rows that migrations write into an empty database."""
OF_THE_SESSION: Final = re.compile(
    r"^(?:--|-- (?:Name|PostgreSQL|Dumped|Completed).*|\\.*|SET \w+ = .*"
    r"|SELECT pg_catalog\.set_config.*|COMMENT ON EXTENSION .*)\n+",
    re.MULTILINE,
)
"""Lines of pg_dump that set its session up, or that only the owner of an extension may run."""


def main() -> None:
    """Write the baseline of the migrations as they are now."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # the servers may run as a user of their own
        with EmbeddedServers(Path(folder) / "servers") as servers:
            server, dumped = asyncio.run(_dump(servers.database_url))
    steps = migrations()
    written = MIGRATIONS / BASELINE
    written.parent.mkdir(exist_ok=True)
    written.write_text(
        "-- The schema of an empty database. Do not edit it: `python -m tolsey.storage.baseline` writes it.\n"
        f"-- baseline: migration {steps[-1].number}, PostgreSQL {server}, sha256 {digest_of(steps)}\n"
        f"SET LOCAL check_function_bodies = false;\n{OF_THE_SESSION.sub('', dumped)}{ROWS}",
        encoding="utf-8",
    )


async def _dump(url: str) -> tuple[int, str]:
    administrator = await asyncpg.connect(url)
    server = administrator.get_server_version().major
    await administrator.execute("CREATE DATABASE baseline")
    await administrator.close()
    made = urlunsplit(urlsplit(url)._replace(path="/baseline"))
    await migrate(made, with_baseline=False)
    dump = [str(binaries.postgres(None).programs / "pg_dump"), "--schema-only", "--no-owner", made]
    done = await anyio.run_process(dump)
    return server, done.stdout.decode()


if __name__ == "__main__":
    main()
