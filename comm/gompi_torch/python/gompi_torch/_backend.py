"""What torch.distributed calls: groups, the store, and the barrier that tells who is missing."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
import threading
import time
import types
import zlib
from datetime import timedelta
from typing import Any, Callable, Iterator

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from . import _C, _meet, _signals, _versions
from ._hooks import add_backend, is_gompi, replace

Function = Callable[..., Any]

def register() -> None:
    """Registers the backend, and replaces what torch.distributed has for its own backends alone. For
    the newest torch that is, with the test of gompi_torch_test.go that notices when torch changes:

    - init_process_group: an init_method is asked before a backend is, so it would look for ranks that
      know each other (TestTorchRunsUnderTorchrun).
    - Reducer: for tensors on processors it does not ask the backend for buckets, as by allocate_tensor
      (TestTorchTrainsAsWithGloo: "gradients in the heap").
    """
    dist.register_rendezvous_handler("gompi", _rendezvous)
    replace("init_process_group", _with_store)
    if _versions.release(torch.__version__) < (2, 15):
        _replace_for_older()
    for name in ("__init__", "_rebuild_buckets"):
        setattr(dist.Reducer, name, _in_heap(getattr(dist.Reducer, name)))
    add_backend("gompi", new_group)


def _replace_for_older() -> None:
    """Replaces what later versions of torch tell or ask the backend."""
    replace("monitored_barrier", _in_cpp)
    for name, f in list(vars(c10d).items()):
        if type(f) is types.FunctionType and "async_op" in inspect.signature(f).parameters:
            replace(name, _inline)


def new_group(options: Any, _: object) -> Any:
    """A group of the ranks that options name, for torch."""
    if options.group_size < 0:  # MPI knows them, and needs no store: so torch gives none to "mpi"
        url = "gompi://" if _is_met() else "env://"
        options.store, options.group_rank, options.group_size = next(c10d.rendezvous(url, timeout=options.timeout))
    if options.group_size > 1 and not _meet.is_known():
        _meet.join(options.store, options.group_rank, options.group_size, options.timeout)
    size = _C.join(options.timeout)[1]
    _first()
    ranks = list(options.global_ranks_in_group)
    is_whole = options.group_size == size and ranks in ([], list(range(size)))
    # Groups that are made at the same time differ in their tags.
    return _C.group(options, -1 if is_whole else zlib.crc32(options.group_id.encode()) >> 1)


@functools.lru_cache(maxsize=None)
def _first() -> None:
    """What is done before there is a group."""
    _C.explain_mismatches(_where)
    _C.find_places(_place)
    _signals.watch()
    if _C.place(b""):  # gompirun counts calls
        _C.number_places(_number)
    untested = _versions.too_new(torch.__version__)
    if untested and _C.join()[0] == 0:
        print(f"gompi_torch: {untested}", file=sys.stderr)


def _is_met() -> bool:
    """Whether this process is alone, or knows the other ranks."""
    return "WORLD_SIZE" not in os.environ or _meet.is_known()


def _rendezvous(url: str, timeout: timedelta = c10d.default_pg_timeout, **_: object) -> Iterator[tuple[dist.Store, int, int]]:
    """What init_method "gompi://" does."""
    rank, size = _C.join(timeout)
    yield _C.store(timeout), rank, size
    raise RuntimeError("gompi: a job has one rendezvous: want to start it anew, as gompirun -max-restarts does")


def _with_store(init: Function) -> Function:
    """init_process_group with a store of the job's own: where the ranks know each other, there is
    no process to search for."""
    default = inspect.signature(init).parameters["timeout"].default

    @functools.wraps(init)
    def init_process_group(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None, *args, **kwargs):
        if timeout is None:
            timeout = default
        is_met = _meet.is_known() or rank == world_size == -1 and "WORLD_SIZE" not in os.environ
        by_torch = store is not None or str(backend).lower() == "mpi" or not (init_method or "env://").startswith("env://")
        if not is_gompi(backend) or by_torch or not is_met:
            return init(backend, init_method, timeout, world_size, rank, store, *args, **kwargs)
        limit = timeout or c10d.default_pg_timeout
        is_rank, is_size = _C.join(limit)
        for said, what, is_so in ((rank, "rank", is_rank), (world_size, "world_size", is_size)):
            if said not in (-1, is_so):
                raise ValueError(f"gompi: init_process_group({what}={said}): this is {what} {is_so}, as the launcher says")
        rank, world_size = is_rank, is_size
        store = _C.store(limit)
        store.set_timeout(limit)
        return init(backend, None, timeout, world_size, rank, store, *args, **kwargs)

    return init_process_group


def _in_cpp(barrier: Function) -> Function:
    """monitored_barrier, which torch < 2.15 has for groups whose backend is named gloo."""

    @functools.wraps(barrier)
    def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
        group = group or c10d._get_default_group()
        if not is_gompi(dist.get_backend(group)):
            return barrier(group, timeout, wait_all_ranks)
        return group.monitored_barrier(timeout or c10d.default_pg_timeout, wait_all_ranks)

    return monitored_barrier


def _inline(f: Function) -> Function:
    """f, a collective, which says first whether its caller waits for it: who waits runs it."""
    at = list(inspect.signature(f).parameters).index("async_op")

    @functools.wraps(f)
    def inner(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("async_op") or len(args) > at and args[at] or not _C.loaded():
            return f(*args, **kwargs)
        _C.waits_for_next(True)
        try:
            return f(*args, **kwargs)
        finally:
            _C.waits_for_next(False)

    return inner


@contextlib.contextmanager
def heap() -> Iterator[None]:
    """The tensors of 4 KiB and more that this thread makes in the meantime lie in memory that the other
    ranks of the host read and write in place, while a collective or a message with them is under way.
    Collectives with them are faster. What a child of fork writes there its parent sees."""
    _C.enter_heap()
    try:
        yield
    finally:
        _C.leave_heap()


def _in_heap(f: Function) -> Function:
    """f, which makes gradients' buckets."""

    @functools.wraps(f)
    def inner(*args: Any, **kwargs: Any) -> Any:
        with heap() if _C.loaded() else contextlib.nullcontext():
            return f(*args, **kwargs)

    return inner


_packages = tuple(os.path.dirname(p) + os.sep for p in (torch.__file__, __file__))


def _frame(frame: types.FrameType | None = None) -> types.FrameType | None:
    """The innermost frame that is not torch's or gompi_torch's, of this thread, or from a frame on."""
    frame = frame or sys._getframe()
    while frame and frame.f_code.co_filename.startswith(_packages):
        frame = frame.f_back
    return frame


def _place() -> str:
    """Where this thread is, as gompirun names places."""
    frame = _frame()
    return _name(frame) if frame else ""


def _name(frame: types.FrameType) -> str:
    folder, name = os.path.split(frame.f_code.co_filename)
    return f"{os.path.join(os.path.basename(folder), name)}:{frame.f_lineno}"


_numbers: dict[object, int] = {}  # of places, by code and instruction; those of one line differ


def _number() -> int:
    """The number of the place that calls a collective. Gradients are reduced on a thread of torch's, where
    no frame is the program's: then it is where the main thread is, as in backward()."""
    frame = _frame() or _frame(sys._current_frames().get(threading.main_thread().ident or 0))
    if not frame:
        return 0
    key = frame.f_code, frame.f_lasti
    if key not in _numbers:
        _numbers[key] = _C.place(_name(frame).encode())
    return _numbers[key]


def _where() -> str:
    """Where the ranks of a group are that called different collectives, in words. Each of them calls it."""
    of, frame = _C.mismatch(), _frame()
    here = f"{frame.f_code.co_filename}:{frame.f_lineno}, in {frame.f_code.co_name}" if frame else "not in Python"
    try:
        return _where_all(dist.PrefixStore("where", of.store), of.group_rank, of.group_size, here)
    except RuntimeError:  # a rank has ended that has the store: the error of the collective is what counts
        return f"\n    rank {of.group_rank}: {here}"


def _where_all(store: dist.Store, rank: int, size: int, here: str) -> str:
    """Where all ranks of a group are, by a store, if this one is here."""
    deadline = time.monotonic() + 2

    def have(*keys: str) -> bool:
        try:
            store.wait(list(keys), timedelta(seconds=max(deadline - time.monotonic(), 0.001)))
        except RuntimeError:
            return False
        return True

    store.set(str(rank), here)
    ranks_at: dict[str, list[str]] = {}
    for r in range(size):
        place = here if r == rank else store.get(str(r)).decode() if have(str(r)) else "somewhere else"
        ranks_at.setdefault(place, []).append(str(r))
    store.set(f"{rank} knows", "")
    if _C.join()[0] == 0:  # whose store it is, and which may end at once
        have(*(f"{r} knows" for r in range(size)))
    return "".join(f"\n    rank {', '.join(ranks)}: {place}" for place, ranks in ranks_at.items())
