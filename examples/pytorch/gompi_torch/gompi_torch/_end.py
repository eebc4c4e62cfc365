"""How a rank ends: with its job told why, if by an exception that nobody has caught."""

import atexit
import os
import sys

from . import _C

_failure = None


def watch():
    process = os.getpid()
    show = sys.excepthook

    def note(kind, value, trace):
        global _failure
        said = str(value).split("\n")[0]  # those of torch have a page
        _failure = (130 if issubclass(kind, KeyboardInterrupt) else 1, f"{kind.__name__}: {said}")
        show(kind, value, trace)

    sys.excepthook = note
    atexit.register(lambda: os.getpid() == process and _leave())


def _leave():
    if not _C.joined():
        return
    if _failure:
        _C.abort(*_failure)
    else:
        _C.finalize()
