"""Four ranks on two nodes: what is for a rank of the same node passes no network, and what is for one of
the other goes by TCP. The argument is the network device between the nodes."""

import os
import sys

import torch
import torch.distributed as dist

import gompi_torch

dist.init_process_group("gompi")
rank, size, n = dist.get_rank(), dist.get_world_size(), 1 << 20
assert (size, int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["GROUP_RANK"])) == (4, 2, rank // 2)


def passed():
    """The bytes that this node has received by a device: its own, and that between the nodes."""
    with open("/proc/net/dev") as f:
        got = {line.split(":")[0].strip(): int(line.split(":")[1].split()[0]) for line in f if ":" in line}
    return got["lo"], got[sys.argv[1]]


def sends(to):
    """What devices pass while a rank sends a tensor to another."""
    t = torch.full((n,), float(rank))
    dist.barrier()
    before = passed()
    dist.barrier()
    if rank == to[0]:
        dist.send(t, to[1])
    elif rank == to[1]:
        dist.recv(t, to[0])
        assert torch.equal(t, torch.full((n,), float(to[0])))
    dist.barrier()
    return [now - then for now, then in zip(passed(), before)]


for to in ((0, 1), (2, 3), (0, 2), (1, 3)):
    own, between = sends(to)
    assert own < n and (between > 4 * n if rank // 2 == 1 and to[0] + 2 == to[1] else between < n), (to, own, between)
t = torch.full((n,), rank + 1.0)
dist.all_reduce(t)
assert torch.equal(t, torch.full((n,), 10.0)), t
sys.stdout.write(f"rank {rank} is there\n")
dist.destroy_process_group()
