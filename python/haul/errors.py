"""What goes wrong, sorted by who is at fault.

::

    HaulError
    ├── SourceError                    the file or disk that is read
    ├── DestinationError               the file or disk that is written
    │   └── DestinationFull
    ├── PeerError                      the program at the other end
    │   ├── Refused                    it does not let us                   (also PermissionError)
    │   ├── ClosedByPeer               it closed the connection             (also ConnectionResetError)
    │   └── StreamReset                it wants no more of a stream, or gave up writing it
    ├── NetworkError                   the network between                  (also ConnectionError)
    │   ├── Unreachable                nothing ever came back
    │   ├── LoginFailed                ssh led to no haul over there
    │   └── ConnectionLost             it was there and is gone
    ├── NotTrusted                     somebody has to decide whom to trust
    ├── NotFound                       no such root                         (also FileNotFoundError)
    └── LocalError                     this side: its files, its system
        ├── UsageError                 what was asked makes no sense        (also ValueError)
        ├── Closed                     this side closed it
        └── Cancelled                  this side gave it up
    PartialCopy                        (a HaulError) raised by Copied.check()

Every one has ``hint``: what to do, or ``None``. A copy that ends by an exception has kept what had arrived; the same call goes on from there. Times that ran out are Python's ``TimeoutError``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from ._copy import Copied

__all__ = [
    "Cancelled",
    "Closed",
    "ClosedByPeer",
    "ConnectionLost",
    "DestinationError",
    "DestinationFull",
    "HaulError",
    "LocalError",
    "LoginFailed",
    "NetworkError",
    "NotFound",
    "NotTrusted",
    "PartialCopy",
    "PeerError",
    "Refused",
    "SourceError",
    "StreamReset",
    "Unreachable",
    "UsageError",
]


class HaulError(Exception):
    """Any failure of haul's. ``hint`` says what to do about it, if that is known."""

    hint: Optional[str]
    #: The system's error number, where there is one.
    errno: Optional[int]

    def __init__(self, message: str, hint: Optional[str] = None, errno: Optional[int] = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.errno = errno

    def __str__(self) -> str:
        return f"{self.message} (hint: {self.hint})" if self.hint else self.message

    def __reduce__(self) -> tuple[type[HaulError], tuple[str, Optional[str], Optional[int]]]:
        return type(self), (self.message, self.hint, self.errno)


class SourceError(HaulError):
    """The file or disk that is read is at fault."""


class DestinationError(HaulError):
    """The file or disk that is written is at fault."""


class DestinationFull(DestinationError):
    """No room is left there. Make some: the same call then goes on from where this one stopped."""


class PeerError(HaulError):
    """The program at the other end broke the protocol, cannot do what is asked, or speaks another version."""


class Refused(PeerError, PermissionError):
    """The other side does not let us: the key is not authorised, or may only read."""


class ClosedByPeer(PeerError, ConnectionResetError):
    """The peer's program closed the connection."""


class StreamReset(PeerError):
    """The peer's program wants no more of a stream, or gave up writing it."""


class NetworkError(HaulError, ConnectionError):
    """The network between is at fault."""


class Unreachable(NetworkError):
    """Nothing ever came back: no such host, nobody listens there, or UDP is blocked on the way."""


class LoginFailed(NetworkError):
    """ssh led to no haul at the other end; where ssh said why, its last line is in the message."""


class ConnectionLost(NetworkError):
    """The connection was there and is gone."""


class NotTrusted(HaulError):
    """The key of the other side is not known, or is another one than before: somebody has to decide."""


class NotFound(HaulError, FileNotFoundError):
    """The other side has no such root or file."""


class LocalError(HaulError):
    """This side is at fault: its files, its keys, its system."""


class UsageError(LocalError, ValueError):
    """What was asked makes no sense."""


class Closed(LocalError):
    """This side has closed it."""


class Cancelled(LocalError):
    """This side has given it up."""


class PartialCopy(HaulError):
    """Some files were not copied; ``copied`` says which and why."""

    copied: Copied

    def __init__(self, copied: Copied) -> None:
        first = copied.problems[0] if copied.problems else None
        super().__init__(f"{copied.problem_count} not copied" + (f", the first: {first}" if first else ""))
        self.copied = copied

    def __reduce__(self):  # type: ignore[no-untyped-def]
        return type(self), (self.copied,)
