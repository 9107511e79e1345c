"""Tools that write collections and pages which no buyer sees yet."""

from typing import Annotated, Final

from pydantic import Field, model_validator

from tolsey.actors.edit import Edit
from tolsey.actors.store.editing import edits
from tolsey.http.mcp.tools.writes.contract import WORDED, EditArguments, WriteTool

LONGEST_BODY: Final = 60_000


class DraftText(EditArguments):
    """What is written under a handle; what is not given stays."""

    handle: Annotated[
        str,
        Field(max_length=100, pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", description="Its address."),
    ]
    title: Annotated[
        Annotated[str, Field(min_length=1, max_length=255), WORDED] | None,
        Field(description="A new one needs it."),
    ] = None
    body_html: Annotated[
        Annotated[str, Field(max_length=LONGEST_BODY)] | None, Field(description="Its text.")
    ] = None

    @model_validator(mode="after")
    def _something(self) -> "DraftText":
        if self.title is None and self.body_html is None:
            raise ValueError("send title, body_html or both")
        return self


def _of_kind(kind: str, given: DraftText) -> Edit:
    values = {"title": given.title, "body_html": given.body_html}
    wanted = {name: value for name, value in values.items() if value is not None}
    return Edit(kind=kind, ids=(given.handle,), wanted=wanted)


DRAFTING: Final = (
    WriteTool(
        "save_collection",
        "Save a draft collection",
        "Writes a collection that is in no sales channel, new or a draft. Call with dry_run first, as"
        " update_product.",
        DraftText,
        lambda given: _of_kind(edits.COLLECTION, given),
        "catalog:write",
        is_destructive=True,
        needs_plan=True,
    ),
    WriteTool(
        "save_page",
        "Save a draft page",
        "Writes a hidden page, new or a draft. Call with dry_run first, as update_product.",
        DraftText,
        lambda given: _of_kind(edits.PAGE, given),
        "catalog:write",
        is_destructive=True,
        needs_plan=True,
    ),
)
