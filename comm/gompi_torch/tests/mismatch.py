"""Rank 1 calls another collective: all ranks are told both, and where they stand, or if the store has gone
with its rank, where they do themselves."""

import torch
import torch.distributed as dist

import gompi_torch

dist.init_process_group("gompi")
other = dist.new_group()
t = torch.ones(4)
store = dist.distributed_c10d._get_default_store()
store.set(f"here {dist.get_rank()}", "")
store.wait([f"here {r}" for r in range(dist.get_world_size())])  # a late rank's new_group would fail


def told(group=None):
    try:
        if dist.get_rank() == 1:
            dist.broadcast(t, 0, group)  # the place of rank 1
        else:
            dist.all_reduce(t, group=group)  # the place of the others
    except RuntimeError as e:
        return str(e)


def gone(*_):
    raise RuntimeError("gompi: store: irecv")


lines = open(__file__).read().splitlines()
place = lambda text: next(f"mismatch.py:{i}, in told" for i, line in enumerate(lines, 1) if line.endswith("# " + text))
error = told()
for want in ("allreduce(", "bcast(", "rank 1: ", place("the place of rank 1"), place("the place of the others")):
    assert want in error, f"{want!r} is not in {error}"
dist.PrefixStore = gone
error = told(other)
for want in ("allreduce(", "bcast(", f"rank {dist.get_rank()}: "):
    assert want in error, f"{want!r} is not in {error}"
assert "store" not in error, error
print(f"rank {dist.get_rank()} is told")
