"""Scripts that ask for another backend get gompi."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Callable

import torch

from . import _hooks


def map_backends() -> None:
    """Has torch.distributed take "gloo", "mpi" and no backend for "gompi", and "nccl", too, where torch
    finds no GPU. A group without a backend of its own has that of all ranks."""
    # With none torch 2 takes nccl, too, for what is on a GPU.
    none = "cpu:gompi,cuda:nccl" if _hooks.is_v2 and torch.cuda.is_available() else "gompi"
    _hooks.replace("init_process_group", functools.partial(_with_gompi, none, 0))
    _hooks.replace("new_group", functools.partial(_with_gompi, None, 2))


def _with_gompi(none: str | None, at: int, f: Callable[..., Any]) -> Callable[..., Any]:
    """f, whose argument at that place is a backend, or none."""

    @functools.wraps(f)
    def inner(*args: Any, **kwargs: Any) -> Any:
        backend = args[at] if len(args) > at else kwargs.pop("backend", None)
        backend = none if backend is None else _mapped(backend)
        if len(args) > at:
            args = (*args[:at], backend, *args[at + 1 :])
        else:
            kwargs["backend"] = backend
        return f(*args, **kwargs)

    return inner


def _mapped(backend: object) -> Any:
    """The backend that is taken for one."""
    name = str(backend).lower()
    if ":" in name:  # as in "cpu:gloo,cuda:nccl"
        return ",".join(f"{device}:{_mapped(one)}" for device, one in (part.split(":") for part in name.split(",")))
    if name in ("gloo", "mpi"):
        return "gompi"
    if name == "nccl" and not torch.cuda.is_available():
        if os.environ.get("RANK", "0") == "0":
            print('gompi_torch: backend "nccl" wants a GPU, and there is none: "gompi" does the collectives', file=sys.stderr)
        return "gompi"
    return backend
