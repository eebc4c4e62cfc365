"""FSDP2 that is compared with gloo's. The reduce_scatter of torch 2.8's gloo gives the sum for AVG: there FSDP2
sums with both backends, and divides itself."""

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard


def averages(gloo):
    """Whether reduce_scatter averages in a group of gloo's."""
    mean, size = torch.empty(1), dist.get_world_size(gloo)
    dist.reduce_scatter_tensor(mean, torch.ones(size), dist.ReduceOp.AVG, gloo)
    return mean.item() == 1


def shard(modules, by_sum, **how):
    """Shards modules, of which the last contains the others, and returns that one."""
    for module in modules:
        fully_shard(module, **how)
        if by_sum:
            module.set_force_sum_reduction_for_comms(True)
    return module
