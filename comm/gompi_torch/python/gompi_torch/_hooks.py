"""How gompi_torch puts itself into torch.distributed. It needs nothing of what is compiled."""

from __future__ import annotations

import functools
import os
import re
import sys
from typing import Any, Callable

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

is_v2 = int(torch.__version__.split(".")[0]) >= 2
_names: set[str] = set()  # of backends that are gompi

VARIABLE = "GOMPI_TORCH_BACKEND"
"""What users set, and gompirun -torch-backend, to have gompi in place of other backends."""


def add_backend(name: str, make: Callable[..., Any]) -> None:
    """Has torch.distributed call make for a group with the backend of this name."""
    _names.add(name)
    dist.Backend.register_backend(name, make, extended_api=True, **({"devices": ["cpu"]} if is_v2 else {}))


def replace(name: str, change: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Has torch.distributed do change(f) in place of its function f, in those of its modules, too, that
    have it by name, as device_mesh has init_process_group."""
    f = getattr(c10d, name)
    changed = change(f)
    for module in [m for path, m in sys.modules.items() if path.startswith("torch.distributed")]:
        if vars(module).get(name) is f:
            setattr(module, name, changed)


def is_gompi(backend: object) -> bool:
    """Whether a backend is gompi, or has it for one of its devices. For none torch takes gloo."""
    return not _names.isdisjoint(re.split("[:,]", str(backend or "gloo").lower()))


def refuse(why: str) -> None:
    """Has whoever asks for the backend "gompi", or for any where it is to be in its place, be told why
    there is none."""

    def fail(*_: object) -> None:
        raise RuntimeError(f'gompi_torch: no backend "gompi": {why}')

    def before_ranks_meet(init: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(init)
        def init_process_group(backend: object = None, *args: Any, **kwargs: Any) -> Any:
            if is_gompi(backend) or os.environ.get(VARIABLE):
                fail()
            return init(backend, *args, **kwargs)

        return init_process_group

    add_backend("gompi", fail)
    replace("init_process_group", before_ranks_meet)
