"""Scripts that ask for another backend get gompi."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Callable

import torch
from torch.distributed import distributed_c10d as c10d

from . import _hooks, _versions
from ._backend import new_group


@functools.lru_cache(maxsize=None)
def map_backends() -> None:
    """Has torch.distributed take "gloo", "mpi" and no backend for "gompi", and "nccl", too, where torch
    finds no GPU. Where it finds one, tensors on it are with the backend that the script asked for.
    A group without a backend of its own has that of all ranks."""
    os.environ[_hooks.VARIABLE] = "gompi"  # for ranks that the script starts itself, too
    # To count is no use of a GPU, which would be in the way of children of fork.
    if _versions.release(torch.__version__) >= (2, 15) and torch.cuda.device_count() == 0:
        _register()
    else:
        _hooks.replace("init_process_group", functools.partial(_with_gompi, True, 0))
        _hooks.replace("new_group", functools.partial(_with_gompi, False, 2))


def _register() -> None:
    """Registers gompi by the names of torch's own backends: get_backend() tells the name that the
    script has said. Where it says none, torch takes "gloo"."""
    for name in ("gloo", "mpi"):
        _hooks.add_backend(name, new_group)
    _hooks.add_backend("nccl", _in_place_of_nccl)
    # ProcessGroupGloo would record by itself what the flight recorder shows.
    c10d._FR_SELF_RECORDING_BACKENDS.discard("gloo")


def _in_place_of_nccl(*args: Any) -> Any:
    """A group for a script that wants NCCL."""
    _tell_there_is_no_gpu()
    return new_group(*args)


def _with_gompi(is_first: bool, at: int, f: Callable[..., Any]) -> Callable[..., Any]:
    """f, whose argument at that place is a backend, or none: the first group wants one."""

    @functools.wraps(f)
    def inner(*args: Any, **kwargs: Any) -> Any:
        backend = args[at] if len(args) > at else kwargs.pop("backend", None)
        if backend is not None:
            backend = _mapped(backend)
        elif is_first:
            # With none torch 2 takes nccl, too, for what is on a GPU.
            backend = "cpu:gompi,cuda:nccl" if _has_gpus() else "gompi"
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
        _tell_there_is_no_gpu()
        return "gompi"
    return name


def _has_gpus() -> bool:
    """Whether a group has a backend for each kind of device, and one of them is for GPUs."""
    return _hooks.is_v2 and torch.cuda.is_available()


@functools.lru_cache(maxsize=None)
def _tell_there_is_no_gpu() -> None:
    if os.environ.get("RANK", "0") == "0":
        print('gompi_torch: backend "nccl" wants a GPU, and there is none: "gompi" does the collectives', file=sys.stderr)
