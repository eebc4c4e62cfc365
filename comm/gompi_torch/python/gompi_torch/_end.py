"""How a rank ends: with its job told why, if by an exception that was not caught."""

from __future__ import annotations

import atexit
import os
import sys
import time
from types import TracebackType

from . import _C

_patience = 30  # seconds that a rank waits for its launcher when another one has failed
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
    atexit.register(lambda: os.getpid() == process and _fail())
    atexit.register(_Last())


class _Last:
    """What atexit lets go when it has called all functions that it has, those that were registered before
    this one, too: in them the program may do its last collectives."""

    def __init__(self) -> None:
        self.process = os.getpid()

    def __call__(self) -> None:
        """Nothing is left to do later than the functions that were registered before."""

    def __del__(self) -> None:
        if os.getpid() == self.process and _C.loaded() and _C.joined() and not _failure:
            _C.leave_groups()  # and the job, when the status is known and is 0


def _fail() -> None:
    """Tells the job why this rank fails, if by an exception."""
    if not _C.loaded() or not _C.joined() or not _failure:
        return
    if "communicator revoked" in _failure[1] or "has left" in _failure[1]:
        # Another rank is to blame. If it fails, the launcher ends this one, too, when it has ended, which
        # takes Python seconds on a busy machine. Launchers that look for failures now and then, as torchrun
        # does ten times a second, blame the lower one of two ranks that have failed meanwhile.
        limit = time.monotonic() + _patience
        if b"has left" not in _C.await_end(_patience * 1000):
            time.sleep(max(limit - time.monotonic(), 0))
    _C.abort(_failure[0], _failure[1].encode())
