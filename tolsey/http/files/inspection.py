"""Whether bytes are what they claim to be, looked at as they come."""

import codecs
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from tolsey.actors.refusals import Unprocessable

HEAD_BYTES: Final = 16
OFFICE: Final = "application/vnd.openxmlformats-officedocument."
TEST_VIRUS: Final = rb"X5O!P%@AP[4\PZX54(P^)7CC)7}$EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"
"""What every scanner finds (EICAR), so that a scan can be seen to work."""


class FileRefused(Unprocessable):
    """The bytes are not what they claim to be, or do what no document has to."""

    code = "file_refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileType:
    """A type of file that is taken: by which names, by which first bytes, and what must not be in it."""

    suffixes: tuple[str, ...]
    begins: Callable[[bytes], bool] | None = None
    """None for text, which has no first bytes of its own."""
    never: tuple[bytes, ...] = ()


MACROS: Final = (b"vbaProject.bin", b"/embeddings/")
"""Parts of a document that run what nobody asked for; an archive has the names of its parts as they are."""


def _is_zip(head: bytes) -> bool:
    return head.startswith(b"PK\x03\x04")


TYPES: Final = {
    "application/pdf": FileType(
        suffixes=(".pdf",),
        begins=lambda head: head.startswith(b"%PDF-"),
        never=(b"/JavaScript", b"/Launch", b"/EmbeddedFile"),
    ),
    "image/png": FileType(
        suffixes=(".png",), begins=lambda head: head.startswith(b"\x89PNG\r\n\x1a\n")
    ),
    "image/jpeg": FileType(
        suffixes=(".jpg", ".jpeg"), begins=lambda head: head.startswith(b"\xff\xd8\xff")
    ),
    "image/webp": FileType(
        suffixes=(".webp",),
        begins=lambda head: head.startswith(b"RIFF") and head[8:12] == b"WEBP",
    ),
    "text/csv": FileType(suffixes=(".csv",)),
    "text/plain": FileType(suffixes=(".txt", ".md")),
    f"{OFFICE}spreadsheetml.sheet": FileType(suffixes=(".xlsx",), begins=_is_zip, never=MACROS),
    f"{OFFICE}wordprocessingml.document": FileType(
        suffixes=(".docx",), begins=_is_zip, never=MACROS
    ),
}
"""What a data room takes: what people read, and nothing that a reader would run."""


def type_of(content_type: str, name: str) -> FileType:
    """Find a type by what a file claims to be. Raises FileRefused."""
    found = TYPES.get(content_type)
    if found is None:
        raise FileRefused(
            f"This file type isn't supported. Upload one of these types: {', '.join(TYPES)}."
        )
    if PurePosixPath(name).suffix.lower() not in found.suffixes:
        raise FileRefused(
            f"The file's name doesn't match its type {content_type}. Rename it to end in {' or '.join(found.suffixes)}."
        )
    return found


async def inspected(chunks: AsyncIterator[bytes], wanted: FileType) -> AsyncGenerator[bytes]:
    """Give bytes on as they come, as long as they are what they claim to be. Raises FileRefused."""
    never = (*wanted.never, TEST_VIRUS)
    kept = max(map(len, never)) - 1
    head, tail = b"", b""
    decoder = codecs.getincrementaldecoder("utf-8")() if wanted.begins is None else None
    async for chunk in chunks:
        if len(head) < HEAD_BYTES:
            head += chunk[: HEAD_BYTES - len(head)]
            _check_head(wanted, head)
        # What must not be there may lie across two chunks.
        looked_at = tail + chunk
        if any(one in looked_at for one in never):
            raise FileRefused(
                "The file contains macros, scripts or a virus signature. Upload a copy without"
                " active content."
            )
        tail = looked_at[-kept:]
        if decoder is not None:
            _check_text(decoder, chunk)
        yield chunk
    if not head:
        raise FileRefused("The file is empty. Choose another file.")
    if wanted.begins is not None and not wanted.begins(head):
        raise FileRefused(
            "The file's content doesn't match its type. Export the file again and upload the"
            " new copy."
        )
    if decoder is not None:
        _check_text(decoder, b"", final=True)


def _check_head(wanted: FileType, head: bytes) -> None:
    if wanted.begins is not None and len(head) == HEAD_BYTES and not wanted.begins(head):
        raise FileRefused(
            "The file's content doesn't match its type. Export the file again and upload the"
            " new copy."
        )


def _check_text(decoder: codecs.IncrementalDecoder, chunk: bytes, *, final: bool = False) -> None:
    try:
        decoder.decode(chunk, final)
    except UnicodeDecodeError as error:
        raise FileRefused(
            "The file is not encoded in UTF-8. Save it as UTF-8 and upload it again."
        ) from error
    if b"\0" in chunk:
        raise FileRefused("The file is not a text file. Save it as plain text in UTF-8.")
