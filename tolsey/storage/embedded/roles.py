"""Under which role the service uses its embedded database."""

from typing import Final
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from tolsey.storage.database import UNREACHABLE, translated

ROLE: Final = "tolsey"
LOCK_KEY: Final = 0x726F6C65
"""The advisory lock of whoever sets the role up: "role" in ASCII; grants at once would collide."""

SET_UP: Final = f"""
    DO $$ BEGIN
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{ROLE}') THEN
            CREATE ROLE {ROLE} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;
        END IF;
    END $$;
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {ROLE};
    GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {ROLE};
    ALTER DEFAULT PRIVILEGES IN SCHEMA public
        GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {ROLE};
    ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO {ROLE};
"""
"""What a newer process migrates while an older one serves is the older one's to use as well."""


async def service_url(owner_url: str) -> str:
    """Give the address of a role that may read and write rows and nothing else (least privilege).

    The superuser of the cluster owns the tables and migrates them; who serves strangers cannot run
    programs, read files or change the schema through the database.
    """
    try:
        owner = await asyncpg.connect(owner_url, timeout=10)
        try:
            async with owner.transaction():
                await owner.execute("SELECT pg_advisory_xact_lock($1)", LOCK_KEY)
                await owner.execute(SET_UP)
        finally:
            await owner.close()
    except (asyncpg.PostgresError, *UNREACHABLE) as error:
        raise translated(error) from error
    return urlunsplit(urlsplit(owner_url)._replace(netloc=f"{ROLE}@"))
