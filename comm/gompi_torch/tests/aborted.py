"""Rank 1 aborts a group, and makes no call then: the others are told meanwhile."""

import sys

import torch
import torch.distributed as dist

import gompi_torch

dist.init_process_group("gompi")
rank, size = dist.get_rank(), dist.get_world_size()
group, t = dist.new_group(), torch.ones(2)
dist.all_reduce(t, group=group)
dist.barrier()  # all have done that
fifo = sys.argv[1]
if rank == 1:
    group.abort()
    open(fifo).close()  # until rank 0 is told
else:
    try:
        dist.all_reduce(t, group=group)
    except RuntimeError as e:
        assert "revoked" in str(e) and "abort" in str(e), e
    else:
        raise AssertionError("all_reduce of a group that was aborted does not fail")
    if rank == 0:
        open(fifo, "w").close()
dist.all_reduce(t)
assert t[0].item() == size * size, t
print(f"rank {rank} is told")
