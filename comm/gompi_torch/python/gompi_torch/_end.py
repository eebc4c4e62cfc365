"""How a rank ends: with its job told why, if by an exception that was not caught."""

from __future__ import annotations

import atexit
import os
import sys
from datetime import timedelta
from types import TracebackType

from . import _C

_failure: tuple[int, str] | None = None


def watch() -> None:
    """Has the end of this process be told to its job."""
    process = os.getpid()
    show = sys.excepthook

    def note(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        global _failure
        said = str(value).split("\n")[0]  # those of torch have a page
        _failure = (130 if issubclass(kind, KeyboardInterrupt) else 1, ": ".join(filter(None, (kind.__name__, said))))
        show(kind, value, trace)

    sys.excepthook = note
    atexit.register(lambda: os.getpid() == process and _leave())


def _leave() -> None:
    if not _C.loaded() or not _C.joined():
        return
    if not _failure:
        _C.leave_groups()  # and the job, when the status is known and is 0
        return
    if "communicator revoked" in _failure[1] or "has left" in _failure[1]:
        # Another rank is to blame. If it fails, the launcher ends this one, too, when it has ended, which
        # takes Python seconds on a busy machine.
        _C.await_end(timedelta(seconds=30))
    _C.abort(*_failure)
