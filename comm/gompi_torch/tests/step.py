"""A step of DDP by gompi gives the parameters that one by gloo does, bit by bit."""

import copy

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import gompi_torch

dist.init_process_group("gompi")
torch.manual_seed(1)
net = torch.nn.Linear(8, 4)
torch.manual_seed(2 + dist.get_rank())
inputs = torch.randn(16, 8)


def step(group):
    model = DistributedDataParallel(copy.deepcopy(net), process_group=group)
    model(inputs).square().sum().backward()
    torch.optim.SGD(model.parameters(), 0.1).step()
    return list(model.parameters())


gompis, gloos = step(None), step(dist.new_group(backend="gloo"))
assert all(map(torch.equal, gompis, gloos)), (gompis, gloos)
print(f"rank {dist.get_rank()} has gloo's parameters")
