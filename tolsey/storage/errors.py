"""What can go wrong when writing things down."""


class StorageError(Exception):
    """The database could not do what was asked."""


class StorageUnavailable(StorageError):  # noqa: N818 - says what is, as its base says Error
    """The database is out of reach; what was asked has not happened."""


class StorageOverdue(StorageUnavailable):
    """PostgreSQL ended a statement that took longer than it may; the next one may be quicker."""


class StorageFull(StorageUnavailable):
    """PostgreSQL has no room left for what was to be written; it has not happened, and may later."""


class StorageBusy(StorageError):  # noqa: N818 - as above
    """Too many reports of one organization are being read; what was asked has not begun."""


class StorageLocked(StorageError):  # noqa: N818 - as above
    """Others hold the rows for longer than this may wait; nothing was changed, and later it may be."""


class OutcomeUnknown(StorageError):  # noqa: N818 - as above
    """The connection was lost before the database said whether a commit happened."""


class SchemaDrift(StorageError):  # noqa: N818 - as above
    """A table or column is not there that this version knows: its migrations are to be run."""


class UniqueViolation(StorageError):  # noqa: N818 - an answer more than an error
    """Already written down: the delivery, payment or name is a repeat."""
