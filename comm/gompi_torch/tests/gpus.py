"""A script that asks for gloo on a machine with GPUs: gloo stays for tensors that are there."""

import torch
import torch.distributed as dist

import gompi_torch

torch.cuda.is_available = lambda: True
torch.cuda.device_count = lambda: 1
gompi_torch.map_backends()
dist.init_process_group("gloo")
t = torch.ones(2)
dist.all_reduce(t)
for group in dist.group.WORLD, dist.new_group(backend="gloo"), dist.new_group(backend="cpu:gloo,cuda:gloo"):
    by = {device: group._get_backend(torch.device(device)).name() for device in ("cpu", "cuda")}
    assert by == {"cpu": "gompi", "cuda": "gloo"}, by
print(f"rank {dist.get_rank()} has {t.tolist()}")
dist.destroy_process_group()
