"""A backend "gompi" of torch.distributed:

    import gompi_torch
    torch.distributed.init_process_group("gompi")

GOMPI_TORCH_BACKEND=gompi, which `gompirun -torch-backend gompi` and `python -m gompi_torch train.py`
set, has scripts that ask for another backend run as they are. `python -m gompi_torch` alone says
which versions there are, and what is wrong.

To import it never fails, as torch does so for all of its users: whoever uses it is told what is wrong.
"""

from __future__ import annotations

import os

try:
    import torch
except ModuleNotFoundError as e:
    if e.name != "torch":
        raise
    raise ModuleNotFoundError("gompi_torch wants PyTorch, which this Python lacks: pip install torch", name="torch") from None

from . import _versions

__all__ = ["heap", "map_backends", "problem", "register"]

problem = _versions.problem()
"""Why it cannot be used, "" if it can."""

if not problem:
    try:
        from . import _backend, _end, _hooks
        from ._backend import heap
        from ._map import map_backends

        _backend.register()
        _end.watch()
        if os.environ.get(_hooks.VARIABLE):
            map_backends()
    except Exception as e:
        problem = f"{type(e).__name__}: {e}"

if problem and torch.distributed.is_available():
    from . import _hooks

    _hooks.refuse(problem)


def register() -> None:
    """Registers the backend: to import the package is enough. torch >= 2.15 calls it."""


def __getattr__(name: str) -> object:
    if problem and name in __all__:
        raise ImportError(f"gompi_torch: {problem}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
