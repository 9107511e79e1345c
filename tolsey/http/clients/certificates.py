"""Which certificates other people's services are believed by."""

import ssl
from functools import cache

import httpx


@cache
def trusted_certificates() -> ssl.SSLContext:
    """Trust the public authorities, and no file that the environment names.

    All clients share one: reading the authorities takes longer than making the rest of a client.
    """
    return httpx.create_ssl_context(trust_env=False)
