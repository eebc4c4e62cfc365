"""Rank 1 comes late to everything: the others are told, in time."""

import time
from datetime import timedelta

import torch
import torch.distributed as dist

import gompi_torch


def fails(what, want, f):
    begin = time.monotonic()
    try:
        f()
    except (RuntimeError, ValueError) as e:
        assert want in str(e), f"{what}: {want!r} is not in {e}"
    else:
        raise AssertionError(f"{what} does not fail")
    return time.monotonic() - begin


dist.init_process_group("gompi", timeout=timedelta(seconds=20))
rank, size = dist.get_rank(), dist.get_world_size()
store = dist.distributed_c10d._get_default_store()

# A monitored_barrier names who is missing, on all that came.
hasty = dist.new_group(timeout=timedelta(seconds=2))
if rank != 1:
    fails("monitored_barrier", "1 failed to pass monitoredBarrier", lambda: dist.monitored_barrier(timeout=timedelta(seconds=1), wait_all_ranks=True))
    fails("wait for a key", "never", lambda: store.wait(["never"], timedelta(milliseconds=200)))
    # A wait of one's own ends, and the collective goes on.
    t = torch.ones(3)
    work = dist.all_reduce(t, async_op=True)
    fails("wait", f"ALLREDUCE of rank {rank} in group 0 ({size} ranks) is not over after 200 ms", lambda: work.wait(timedelta(milliseconds=200)))
    store.add("have waited", 1)
    work.wait()
    receive = dist.irecv(t, 1, tag=7)
    fails("wait", f"RECV of rank {rank} in group 0 ({size} ranks) from rank 1 with tag 7 is not over after 200 ms", lambda: receive.wait(timedelta(milliseconds=200)))
    store.add("have waited for a message", 1)
    receive.wait()
else:
    while store.add("have waited", 0) < size - 1:
        time.sleep(0.01)
    t = torch.ones(3)
    dist.all_reduce(t)
    while store.add("have waited for a message", 0) < size - 1:
        time.sleep(0.01)
    for r in range(size):
        if r != 1:
            dist.send(t, r, tag=7)
assert t[0].item() == size

# The timeout of a group is that of its collectives. It breaks the group, and no other.
if rank != 1:
    took = fails("all_reduce", "2s" if rank == 0 else "", lambda: dist.all_reduce(t, group=hasty))
    assert took < 15, took
    store.add("have failed", 1)
else:
    while store.add("have failed", 0) < size - 1:
        time.sleep(0.01)
    fails("all_reduce of a broken group", "revoked", lambda: dist.all_reduce(t, group=hasty))
dist.all_reduce(t)
assert t[0].item() == size * size, t

# A group that a rank does not come to make is not made, in the time of that group, and harms no other.
if rank != 1:
    took = fails("new_group", "Timed out waiting for rank 1 to make a group", lambda: dist.new_group(timeout=timedelta(seconds=2)))
    assert took < 15, took
    store.add("have failed to make a group", 1)
else:
    while store.add("have failed to make a group", 0) < size - 1:
        time.sleep(0.01)
    took = fails("new_group", "Timed out waiting for rank 1", lambda: dist.new_group(timeout=timedelta(seconds=2)))
    assert took < 2, took
dist.all_reduce(t, group=dist.new_group())
assert t[0].item() == size**3, t

fails("a tensor of another length", "want a block for each", lambda: dist.all_gather([torch.zeros(3)] * size, torch.zeros(4)))
quantized = torch.quantize_per_tensor(torch.zeros(3), 1, 0, torch.quint8)
fails("a type that is not moved", "uantized", lambda: dist.broadcast(quantized, 0))
fails("a receive with any tag", "with tag -1", lambda: dist.recv(t, 0, tag=-1))
fails("a receive from any rank with any tag", "with tag -1", lambda: dist.recv(t, tag=-1))
fails("a send to no rank", "with rank -2", lambda: dist.group.WORLD.send([t], -2, 0))
dist.destroy_process_group()
fails("another rank than the launcher's", "as the launcher says", lambda: dist.init_process_group("gompi", rank=size + 3, world_size=size))
print(f"rank {rank} is told")
