"""How ranks meet that no launcher of gompi's knows, as those of mp.spawn, of torchrun on several hosts,
or of Lightning's own launcher: by the store, the rank and the size that torch has for them."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
from typing import Iterator, Mapping

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


def join(store: dist.Store, rank: int, size: int) -> None:
    """Joins the job of the ranks that have this store. Rank 0 makes the secret by which they know each
    other: who can read the store can join."""
    store.set(f"gompi/{rank}", json.dumps(_host()))
    if rank == 0:
        hosts = [json.loads(store.get(f"gompi/{r}")) for r in range(size)]
        address, port = _master(store)
        job = {"secret": secrets.token_hex(16), "address": address, "port": port, "hosts": hosts}
        store.set("gompi/job", json.dumps(job))
    job = json.loads(store.get("gompi/job"))
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
        _C.join()


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
