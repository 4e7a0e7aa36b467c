"""Everything that can go wrong with a region log.

AuditError
├── EntryRefused      the caller's entry is not a closed JSON value of a known kind
├── LogUnavailable    nothing may be sent: the entry is not durable
├── LogLocked         another process holds this log
├── KeyUnavailable    nothing can be signed: the lasting key does not answer, or not as it should
├── LogDamaged        what is on disk contradicts what was signed; run `audit verify`
│   └── OpeningsDamaged   only the side file of what opens it can't be read
└── NoteInvalid       a checkpoint, key or receipt text cannot be read
"""


class AuditError(Exception):
    """Base of every error raised by the region log."""


class EntryRefused(AuditError):
    """The entry was not written because its form is not allowed. Nothing else is affected."""


class LogUnavailable(AuditError):
    """The entry is not known to be durable; whatever depended on it must not happen."""


class LogLocked(AuditError):
    """Another process holds the lock of this log."""


class LogDamaged(AuditError):
    """The files contradict a signed checkpoint or each other. Opening is refused."""


class OpeningsDamaged(LogDamaged):
    """The side file of openings can't be read. The log itself is not concerned."""


class NoteInvalid(AuditError):
    """A checkpoint, key or receipt could not be read."""


class KeyUnavailable(AuditError):
    """The lasting key certifies nothing now. Without a certified key nothing is recorded."""
