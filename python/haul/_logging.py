"""What haul's libraries log, in Python's logging: logger ``haul`` and those below it, such as ``haul.files`` and ``haul.ssh``.

A thread takes the records over. The level is that of the logger ``haul``, looked at once a second.
"""

from __future__ import annotations

import logging
import os
import threading

from . import _haul

logger = logging.getLogger("haul")
logger.addHandler(logging.NullHandler())

_lock = threading.Lock()
_pid = 0


def start() -> None:
    """Begins to take records over, once a process."""
    global _pid
    with _lock:
        if _pid == os.getpid():
            return
        _pid = os.getpid()
    _haul.start_logging(min(logger.getEffectiveLevel(), 255))
    threading.Thread(target=_run, name="haul-logging", daemon=True).start()


def _run() -> None:
    level = -1
    while True:
        now = min(logger.getEffectiveLevel(), 255)
        if now != level:
            level = now
            _haul.start_logging(level)
        records, dropped = _haul.next_records(1.0)
        for number, name, words in records:
            log = logging.getLogger(name if name.startswith("haul") else f"haul.{name}")
            if log.isEnabledFor(number):
                log.log(number, "%s", words)
        if dropped:
            logger.warning("%d records were dropped: more came than could be taken over", dropped)
