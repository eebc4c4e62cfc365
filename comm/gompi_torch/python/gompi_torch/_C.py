"""What is in C++ (src/module.cpp), by ctypes. It is compiled, where it has to be, and loaded when something
of it is first used. An object of torch's is passed by its address in C++."""

from __future__ import annotations

import ctypes
import functools
from ctypes import POINTER, byref, c_bool, c_char_p, c_int, c_int64, c_void_p, py_object
from datetime import timedelta
from typing import Any, Callable

import torch
import torch.distributed as dist

from . import _compile
from ._hooks import is_v2

# The results of functions, and the types of their arguments.
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "join": (None, c_int64, POINTER(c_int), POINTER(c_int)),
    "joined": (c_bool,),
    "group": (None, c_void_p, c_int, c_int64, c_void_p),
    "store": (None, c_int64, c_void_p),
    "explain_mismatches": (None, py_object),
    "mismatch": (None, c_void_p),
    "find_places": (None, py_object),
    "calls_handlers": (None, c_bool),
    "place": (c_int, c_char_p),
    "number_places": (None, py_object),
    "abort": (None, c_int, c_char_p),
    "await_end": (c_char_p, c_int64),
    "leave_groups": (None,),
    "waits_for_next": (None, c_bool),
    "enter_heap": (None,),
    "leave_heap": (None,),
    "heap_tensors": (c_int64,),
}


def __getattr__(name: str) -> Any:
    if name in _FUNCTIONS:
        return getattr(_cpp(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@functools.lru_cache(maxsize=None)
def _cpp() -> Any:
    """All functions. Their errors are raised here. Those that wait let other threads of Python run."""
    library = _compile.load()
    for name, (result, *arguments) in _FUNCTIONS.items():
        f = getattr(library, f"gompi_torch_{name}")
        f.restype, f.argtypes = result, arguments
        setattr(library, name, f)
        globals().setdefault(name, f)
    return library


def loaded() -> bool:
    """Whether anything of it has been used."""
    return "joined" in globals()


def join(limit: timedelta = timedelta()) -> tuple[int, int]:
    """Joins the job, once, within the limit, if there is one. Returns this rank and their number."""
    rank, size = c_int(), c_int()
    _cpp().join(_ms(limit), byref(rank), byref(size))
    return rank.value, size.value


def group(options: Any, tag: int) -> Any:
    """The group that torch's options say: with the tag -1 of all ranks."""
    to: Any = dist.ProcessGroup(0, 1) if is_v2 else []
    _cpp().group(_address(options), tag, _ms(options.timeout), _address(to) if is_v2 else id(to))
    return to._get_backend(torch.device("cpu")) if is_v2 else to[0]


def store(limit: timedelta) -> dist.Store:
    """A store of all ranks."""
    return _options(lambda to: _cpp().store(_ms(limit), to)).store


def mismatch() -> Any:
    """The store of the group whose ranks called different collectives, its rank and its size."""
    return _options(_cpp().mismatch)


def _options(fill: Callable[[int], None]) -> Any:
    """An object that has fields for C++ to fill in, which torch has Python see."""
    options = dist.distributed_c10d._DistributedBackendOptions()
    fill(_address(options))
    return options


def _address(o: object) -> int:
    """Where the object in C++ is of one that torch has by pybind11: that says so right behind Python's own
    fields, in all of its versions, and again by its pointer that owns the object."""
    if type(o).__basicsize__ >= object.__basicsize__ + ctypes.sizeof(c_void_p * 2):
        there, owned = (c_void_p * 2).from_address(id(o) + object.__basicsize__)
        if there and there == owned:
            return there
    raise RuntimeError(f"gompi_torch: torch {torch.__version__} has {type(o)} in an unknown way: want pybind11's simple layout")


def _ms(time: timedelta) -> int:
    return time // timedelta(milliseconds=1)
