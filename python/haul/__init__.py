"""haul: moves large data across long fat networks.

- :func:`haul.copy` copies files and trees, as ``haul cp`` does; :func:`haul.interrupted` lists what interrupted copies have kept.
- :func:`haul.connect` and :func:`haul.listen` are its sockets: :class:`Connection`, :class:`Stream`, blocks; :mod:`haul.aio` for asyncio.
- :mod:`haul.fleet` uses many servers at once, :mod:`haul.perf` measures a path, :mod:`haul.proxy` carries TCP connections.
- :mod:`haul.fs` is a file system for fsspec, ``haul://host/root``.

Sizes are in bytes, times in seconds, rates in bits a second. Failures are :class:`HaulError` and its subclasses, sorted by who is at fault: see :mod:`haul.errors`.
What the libraries log goes to Python's logger ``haul``.
"""

from ._copy import Change, Copied, Problem, Progress, copy, tqdm_progress
from ._haul import MAX_BLOCK, Identity, __version__, own_key, trust
from ._kept import Interrupted, discard_interrupted, interrupted
from .errors import *  # noqa: F403
from .errors import __all__ as _errors
from .net import Block, BlockReceiver, BlockSender, Connection, Endpoint, Stream, connect, listen

__all__ = [
    "MAX_BLOCK",
    "Block",
    "BlockReceiver",
    "BlockSender",
    "Change",
    "Connection",
    "Copied",
    "Endpoint",
    "Identity",
    "Interrupted",
    "Problem",
    "Progress",
    "Stream",
    "__version__",
    "connect",
    "copy",
    "discard_interrupted",
    "interrupted",
    "listen",
    "own_key",
    "tqdm_progress",
    "trust",
    *_errors,
]
