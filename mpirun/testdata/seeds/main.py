"""Stands in for the program of 002.sbatch, which nobody has handed down.

As programs for such batch files do, it takes the size of the world and where
to meet from what the file exports, and its rank from Slurm.
"""

import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

rank, size = int(os.environ["SLURM_PROCID"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method="env://", rank=rank, world_size=size)
torch.manual_seed(rank)  # the ranks begin alike only because DDP makes them
network = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    network(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
weights = torch.cat([p.detach().flatten() for p in network.parameters()])
lowest, highest = weights.clone(), weights.clone()
dist.all_reduce(lowest, op=dist.ReduceOp.MIN)
dist.all_reduce(highest, op=dist.ReduceOp.MAX)
alike = "alike" if torch.equal(lowest, highest) else "different"
print(f"rank {rank} of {size}: weights are {alike}, {' '.join(sys.argv[1:])}")
dist.barrier()  # rank 0 must not leave while others still need its store
