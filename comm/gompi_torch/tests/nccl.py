"""A script that knows nothing of gompi, and asks for a backend that this machine has no GPU for."""

import sys

import torch
import torch.distributed as dist

dist.init_process_group("nccl", init_method="env://")
pair = dist.new_group([0, 1])
t = torch.ones(2)
dist.all_reduce(t, group=pair)
print(f"rank {dist.get_rank()} has {t.tolist()}, {sys.argv[1:]}, {dist.get_backend()}")
dist.destroy_process_group()
