"""Scripts that ask for another backend get gompi."""

import functools
import os
import sys

import torch

from . import _backend


def map_backends():
    """Has torch.distributed take "gloo", "mpi" and no backend for "gompi", and "nccl", too, where torch
    finds no GPU."""
    _backend.replace("init_process_group", _with_gompi)
    _backend.replace("new_group", _with_gompi)


def _with_gompi(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        at = 0 if f.__name__ == "init_process_group" else 2  # new_group(ranks, timeout, backend)
        if len(args) > at:
            args = (*args[:at], _mapped(args[at]), *args[at + 1 :])
        else:
            kwargs["backend"] = _mapped(kwargs.get("backend"))
        return f(*args, **kwargs)

    return inner


def _mapped(backend):
    name = str(backend).lower()
    if name in ("none", "gloo", "mpi"):
        return "gompi"
    if name == "nccl" and not torch.cuda.is_available():
        if os.environ.get("RANK", "0") == "0":
            print('gompi_torch: backend "nccl" wants a GPU, and there is none: "gompi" does the collectives', file=sys.stderr)
        return "gompi"
    return backend
