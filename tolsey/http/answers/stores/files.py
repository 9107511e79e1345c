"""Files, as those see them who may."""

from tolsey.http.answers.base import ApiAnswer, Timestamp


class FileAnswer(ApiAnswer):
    """A file that is kept until `expiresAt`; `sha256` is what its bytes come to, `size` how many they are."""

    id: str
    organization_id: str
    store_id: str | None
    purpose: str
    name: str
    content_type: str
    sha256: str
    size: int
    created_at: Timestamp
    expires_at: Timestamp


class AddressAnswer(ApiAnswer):
    """A file, and where its bytes are given to whoever comes until `urlExpiresAt`."""

    file: FileAnswer
    url: str
    url_expires_at: Timestamp


class ExportAnswer(ApiAnswer):
    """The file in which an export of a store is."""

    file_id: str
    sha256: str
    size: int
