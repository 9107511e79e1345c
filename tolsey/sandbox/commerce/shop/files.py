"""Files of a shop and texts of its themes."""

from dataclasses import dataclass


@dataclass(slots=True)
class StoredFile:
    """A file of the shop."""

    id: int
    filename: str
    alt: str
    content: bytes
    fileStatus: str  # noqa: N815 - the schema's name


@dataclass(frozen=True, slots=True)
class ThemeText:
    """What a file of a theme says."""

    content: str
