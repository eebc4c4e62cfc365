"""How ranks meet that no launcher of gompi's knows, as those of mp.spawn, of torchrun on several hosts,
or of Lightning's own launcher: by the store, the rank and the size that torch has for them."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import time
from datetime import timedelta
from typing import Any, Iterator, Mapping

import torch.distributed as dist

from . import _C

# What users and gompirun set, and what other launchers do for more than one rank.
_SAID = ("GOMPI_BOOT", "GOMPI_BOOT_FD", "GOMPI_BOOT_ADDR", "GOMPI_RDZV", "GOMPI_TOKEN")
_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")


def is_known() -> bool:
    """Whether gompi finds the other ranks of this process's job by itself, or has found them."""
    said = os.environ
    if _C.joined() or any(name in said for name in _SAID):
        return True
    if "GOMPI_SIZE" in said:  # of the rank of gompirun's whose child this is, as DCP's that write checkpoints
        return False
    if "TORCHELASTIC_RUN_ID" in said:  # of torchrun, which may run in a launcher's job of one rank a host
        return said.get("LOCAL_WORLD_SIZE") == said.get("WORLD_SIZE")
    return any(said.get(name, "1") != "1" for name in _SIZES)


def join(store: dist.Store, rank: int, size: int, timeout: timedelta) -> None:
    """Joins the job of the ranks that have this store. Rank 0 makes the secret by which they know each
    other: who can read the store can join."""
    store.set(f"gompi/{rank}", json.dumps(_host()))
    if rank == 0:
        store.set("gompi/job", json.dumps(_job(store, size, timeout)))
    job = _told(store, rank, timeout)
    here = job["hosts"].count(job["hosts"][rank])
    said: dict[str, object] = {
        **dict.fromkeys(("GOMPI_SIZE", *_SIZES)),  # of the job that has this one in it
        "RANK": rank,
        "WORLD_SIZE": size,
        "LOCAL_WORLD_SIZE": here,
        "TORCHELASTIC_RUN_ID": job["secret"],
    }
    if here < size:
        said.update({"GOMPI_TOKEN": job["secret"], "MASTER_ADDR": job["address"], "MASTER_PORT": job["port"]})
    with _environment(said):
        _C.join(timeout)


def _job(store: dist.Store, size: int, timeout: timedelta) -> dict[str, Any]:
    """What rank 0 has all know to join, or which ranks have not come, and which are to hear that."""
    end = time.monotonic() + timeout.total_seconds()
    came = [r for r in range(size) if not _lacks(store, f"gompi/{r}", timedelta(seconds=max(end - time.monotonic(), 0.001)))]
    if len(came) < size:
        missing = ", ".join(str(r) for r in range(size) if r not in came)
        return {"came": came, "missing": f"rank {missing} of {size} has not come to init_process_group within {timeout}"}
    hosts = [json.loads(store.get(f"gompi/{r}")) for r in came]
    address, port = _master(store)
    return {"secret": secrets.token_hex(16), "address": address, "port": port, "hosts": hosts}


def _told(store: dist.Store, rank: int, timeout: timedelta) -> dict[str, Any]:
    """What rank 0 has all know. Rank 0, with which torch's store may end, stays until they do."""
    slack = timedelta(seconds=10)
    lacks = _lacks(store, "gompi/job", timeout + slack)
    if lacks:
        raise RuntimeError(f"gompi: rank {rank} has waited for rank 0 to say by torch's store how to join: {lacks}")
    job: dict[str, Any] = json.loads(store.get("gompi/job"))
    if "missing" not in job:
        return job
    store.set(f"gompi/{rank} knows", "")
    for r in job["came"] if rank == 0 else ():
        _lacks(store, f"gompi/{r} knows", slack)
    raise RuntimeError(f"gompi: {job['missing']}")


def _lacks(store: dist.Store, key: str, limit: timedelta) -> str:
    """Why a store has no such key yet, when the time is over, "" if it has."""
    try:
        store.wait([key], limit)
    except RuntimeError as e:
        return str(e).split("\n")[0] or type(e).__name__
    return ""


def _host() -> list[str]:
    """What ranks have in common that share memory."""
    with open("/proc/sys/kernel/random/boot_id") as f:
        return [f.read().strip(), socket.gethostname(), str(os.geteuid())]


def _master(store: dist.Store) -> tuple[str, int]:
    """An address of rank 0's host, and a port before those where gompi listens."""
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    address = os.environ.get("MASTER_ADDR") or getattr(store, "host", None) or socket.getfqdn()
    port = os.environ.get("MASTER_PORT") or getattr(store, "port", None)
    return address, int(port or 20000 + secrets.randbelow(10000))


@contextlib.contextmanager
def _environment(variables: dict[str, object]) -> Iterator[None]:
    """The variables of this process are these, too, in the meantime, without those that are None."""
    before = {name: os.environ.get(name) for name in variables}
    _set(variables)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, object]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = str(value)
