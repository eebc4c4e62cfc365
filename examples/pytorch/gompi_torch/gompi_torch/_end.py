"""How a rank ends: with its job told why, if by an exception that nobody has caught."""

import atexit
import os
import sys
import time

from . import _C

_failure = None


def watch():
    process = os.getpid()
    show = sys.excepthook

    def note(kind, value, trace):
        global _failure
        said = str(value).split("\n")[0]  # those of torch have a page
        _failure = (130 if issubclass(kind, KeyboardInterrupt) else 1, ": ".join(filter(None, (kind.__name__, said))))
        show(kind, value, trace)

    sys.excepthook = note
    atexit.register(lambda: os.getpid() == process and _leave())


def _leave():
    if not _C.joined():
        return
    if not _failure:
        _C.leave_groups()  # and the job, when the status is known and is 0
        return
    if "communicator revoked" in _failure[1] or "has left" in _failure[1]:
        time.sleep(3)  # another rank is to blame: the launcher is to hear of that one first, and ends this one then
    _C.abort(*_failure)
