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
    finds no GPU. Where it finds one, tensors on it are with the backend that the script asked for.
    A group without a backend of its own has that of all ranks."""
    # With none torch 2 takes nccl, too, for what is on a GPU.
    none = "cpu:gompi,cuda:nccl" if _has_gpus() else "gompi"
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


def _mapped(backend: object) -> str:
    """The backend that is taken for one."""
    name = str(backend).lower()
    if ":" in name:  # as in "cpu:gloo,cuda:nccl"
        pairs = (part.split(":") for part in name.split(","))
        return ",".join(f"{device}:{_for_device(device, one)}" for device, one in pairs)
    if name == "gloo" and _has_gpus():
        return "cpu:gompi,cuda:gloo"  # which takes tensors on a GPU, too
    return _for_device("cpu", name)


def _for_device(device: str, name: str) -> str:
    """The backend that is taken for one of a device: gompi's tensors are on the processor."""
    if device == "cpu" and name in ("gloo", "mpi"):
        return "gompi"
    if name == "nccl" and not torch.cuda.is_available():
        if os.environ.get("RANK", "0") == "0":
            print('gompi_torch: backend "nccl" wants a GPU, and there is none: "gompi" does the collectives', file=sys.stderr)
        return "gompi"
    return name


def _has_gpus() -> bool:
    """Whether a group has a backend for each kind of device, and one of them is for GPUs."""
    return _hooks.is_v2 and torch.cuda.is_available()
