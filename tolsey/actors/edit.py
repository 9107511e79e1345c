"""A change to one thing of a shop, as it is planned, sealed and sent."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A change to one thing: its kind, its ids as text, and what is wanted of it.

    Wanted of a product are its new `values`; of stock a `delta`, and a `compare` it must be before;
    of a note a `text` to add; of tags the `tags` to add. With a `version` the thing must still be
    the one that this version was told of. Once it is planned, `change` is what is sent for it, and
    `planned` the version that it was planned from.
    """

    kind: str
    ids: tuple[str, ...]
    wanted: Mapping[str, Any]
    version: str | None = None
    change: Mapping[str, Any] | None = None
    planned: str | None = None

    def written(self) -> str:
        """Write it down, to be sealed: a note may say anything."""
        return json.dumps(
            {
                "kind": self.kind,
                "ids": self.ids,
                "wanted": dict(self.wanted),
                "version": self.version,
                "change": self.change,
                "planned": self.planned,
            }
        )

    @classmethod
    def read(cls, text: str) -> "Edit":
        """Read one back."""
        kept = json.loads(text)
        return cls(
            kind=kept["kind"],
            ids=tuple(kept["ids"]),
            wanted=kept["wanted"],
            version=kept["version"],
            change=kept.get("change"),
            planned=kept.get("planned"),
        )
