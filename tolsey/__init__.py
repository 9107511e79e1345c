"""Tolsey: the operations of a commerce business, each entity an actor behind its own mailbox."""

from pathlib import Path

VERSION = "0.1.0"
BUILD = Path(__file__).with_name("build.txt")
"""What the build wrote down of itself (`make build-name`, Dockerfile); read once, never asked of git."""


def version_of(build: Path) -> str:
    """Name the version and, where it is known, the build (PEP 440, local version identifiers)."""
    try:
        return f"{VERSION}+{build.read_text().strip()}"
    except OSError:
        return VERSION


__version__ = version_of(BUILD)
