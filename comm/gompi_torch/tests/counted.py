"""Each of these lines calls a collective, which -stats counts there."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import gompi_torch

dist.init_process_group("gompi")
model = DistributedDataParallel(torch.nn.Linear(4, 1))


def average(t):
    dist.all_reduce(t)  # sync
    return t / dist.get_world_size()


for _ in range(5):
    average(torch.ones(4))
works = [dist.all_reduce(torch.ones(100), async_op=True) for _ in range(3)]  # async
for w in works:
    w.wait()
model(torch.ones(2, 4)).sum().backward()  # backward
dist.barrier()  # barrier
