"""The service, put together of its parts: the only package that knows every concrete class."""

from tolsey.service.starting import Running, now, running

__all__ = ["Running", "now", "running"]
