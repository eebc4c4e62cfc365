"""Signal handlers of the program. One may call whatever it likes, a collective too, so gompi is to know
whether there are any before the main thread runs a collective (queue.h)."""

from __future__ import annotations

import _signal  # which signal.signal, by whatever name a program has it, looks its own functions up in
import functools
import types

import torch

from . import _C

_own: set[int] = set()  # signals that have a handler of the program's


def watch() -> None:
    """Has gompi know of the handlers that there are, and of those that are set later."""
    for number in _signal.valid_signals():
        _note(number, _signal.getsignal(number))
    _C.calls_handlers(bool(_own))
    change = _signal.signal

    @functools.wraps(change)
    def signal(number, handler, /):
        before = change(number, handler)
        _note(int(number), handler)
        _C.calls_handlers(bool(_own))
        return before

    _signal.signal = signal


def _note(number: int, handler: object) -> None:
    module = getattr(handler, "__module__", None) or ""
    if module.split(".")[0] == torch.__name__:
        return  # as DataLoader's, which calls the one before it, and no collective
    # What is not in Python, as default_int_handler, calls none.
    if callable(handler) and not isinstance(handler, types.BuiltinFunctionType):
        _own.add(number)
    else:
        _own.discard(number)
