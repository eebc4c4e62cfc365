"""Rank 1 calls another collective: all ranks are told both, and where they stand."""

import torch
import torch.distributed as dist

import gompi_torch

dist.init_process_group("gompi")
t = torch.ones(4)
try:
    if dist.get_rank() == 1:
        dist.broadcast(t, 0)  # the place of rank 1
    else:
        dist.all_reduce(t)  # the place of the others
except RuntimeError as e:
    lines = open(__file__).read().splitlines()
    place = lambda text: next(f"mismatch.py:{i}, in <module>" for i, line in enumerate(lines, 1) if line.endswith("# " + text))
    for want in ("allreduce(", "bcast(", "rank 1: ", place("the place of rank 1"), place("the place of the others")):
        assert want in str(e), f"{want!r} is not in {e}"
    print(f"rank {dist.get_rank()} is told")
