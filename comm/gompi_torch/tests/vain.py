"""Rank 0, which has the store, ends well while the others wait for keys: they get what one of them sets
still, and an error when nobody can set anything any more."""

import sys
import time

import torch.distributed as dist

import gompi_torch

dist.init_process_group("gompi")
rank, size = dist.get_rank(), dist.get_world_size()
store = dist.distributed_c10d._get_default_store()
dist.barrier()
if rank == 0:
    print("rank 0 is told")
    sys.exit(0)
if rank == 1:
    time.sleep(3)  # it works, while those that wait are looked at
    store.set("done", "yes")
store.get("done")
try:
    store.get("never")  # for 30 minutes
    raise AssertionError("there is a key that nobody has set")
except getattr(dist, "DistNetworkError", RuntimeError) as e:
    assert "rank 0, which has the store, has ended" in str(e) and "never" in str(e), e
print(f"rank {rank} is told")
