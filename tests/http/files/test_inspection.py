"""A file is taken as long as it is what it claims to be, wherever its chunks are cut."""

from collections.abc import AsyncIterator

import pytest

from tolsey.http.files.inspection import TEST_VIRUS, TYPES, FileRefused, inspected, type_of

PDF = b"%PDF-1.7\n1 0 obj << /Type /Catalog >> endobj\n" + b"x" * 100 + b"%%EOF"
ZIP = b"PK\x03\x04" + b"\0" * 26 + b"[Content_Types].xml"
SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


async def in_chunks(content: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(content), size):
        yield content[at : at + size]


async def taken(content_type: str, content: bytes, size: int = 7) -> bytes:
    found = inspected(in_chunks(content, size), TYPES[content_type])
    return b"".join([chunk async for chunk in found])


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_what_is_as_it_claims_comes_through_unchanged(size: int) -> None:
    assert await taken("application/pdf", PDF, size) == PDF
    assert await taken("text/csv", "naïve;1\nété;2".encode(), size) == "naïve;1\nété;2".encode()
    assert await taken(SHEET, ZIP, size) == ZIP
    assert await taken("image/webp", b"RIFF\0\0\0\0WEBPVP8 ....", size)


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(
    ("content_type", "content"),
    [
        ("application/pdf", b""),
        ("application/pdf", b"%PD"),
        ("application/pdf", b"MZ" + PDF),
        ("application/pdf", PDF + b"<< /S /JavaScript /JS (app.alert(1)) >>"),
        ("application/pdf", PDF + b"<< /S /Launch >>"),
        ("application/pdf", PDF + TEST_VIRUS),
        ("image/png", b"<html><script>alert(1)</script></html>"),
        ("image/jpeg", PDF),
        ("text/plain", b"a\0b"),
        ("text/plain", b"caf\xe9"),
        ("text/plain", "é".encode()[:1]),
        ("text/csv", b"a;" + TEST_VIRUS),
        (SHEET, ZIP + b"xl/vbaProject.bin"),
        (SHEET, b"\xd0\xcf\x11\xe0" + b"\0" * 20),
    ],
)
async def test_what_is_not_as_it_claims_is_refused(
    content_type: str, content: bytes, size: int
) -> None:
    with pytest.raises(FileRefused):
        await taken(content_type, content, size)


def test_a_type_is_taken_by_its_own_names_alone() -> None:
    assert type_of("application/pdf", "Books 2026.PDF")
    for content_type, name in (
        ("application/pdf", "books.exe"),
        ("text/html", "page.html"),
        ("image/svg+xml", "logo.svg"),
        ("application/zip", "all.zip"),
    ):
        with pytest.raises(FileRefused):
            type_of(content_type, name)
