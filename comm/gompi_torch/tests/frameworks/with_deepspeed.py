"""DeepSpeed on processors, by gompi: ZeRO stages 0 to 3 and their checkpoints, and parameters that are those
of one process with all samples. Its argument is how many ranks there are."""

import os
import sys
import tempfile

os.environ.setdefault("DS_ACCELERATOR", "cpu")

import deepspeed
import torch
import torch.distributed as dist
from torch import nn

RANKS, STEPS, SAMPLES = int(sys.argv[-1]), 3, 4


def net():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))


def batch(step, rank):
    g = torch.Generator().manual_seed(100 * rank + step)
    return torch.randn(SAMPLES, 6, generator=g), torch.randn(SAMPLES, 1, generator=g)


def loss(network, x, y):
    return (network(x) - y).pow(2).mean()


def alone():
    network = net()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    for step in range(STEPS):
        optimizer.zero_grad()
        x, y = zip(*(batch(step, rank) for rank in range(RANKS)))
        loss(network, torch.cat(x), torch.cat(y)).backward()
        optimizer.step()
    return list(network.parameters())


def engine(stage):
    network = net()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    config = {
        "train_micro_batch_size_per_gpu": SAMPLES,
        "train_batch_size": SAMPLES * RANKS,
        "zero_optimization": {"stage": stage, "stage3_param_persistence_threshold": 0},
        "gradient_clipping": 0.0,
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
    }
    return deepspeed.initialize(model=network, optimizer=optimizer, config=config, dist_init_required=False)[0]


def same(network, want, what):
    with deepspeed.zero.GatheredParameters(list(network.parameters())):
        for a, b in zip(network.parameters(), want):
            assert torch.allclose(a, b, 1e-4, 1e-6), f"{what}: {a} instead of {b}"


deepspeed.init_distributed(dist_backend="gompi")
rank = dist.get_rank()
assert dist.get_world_size() == RANKS and dist.get_backend() == "gompi"
folder = [tempfile.mkdtemp() if rank == 0 else None]
dist.broadcast_object_list(folder)
want = alone()
for stage in range(4):
    of = engine(stage)
    for step in range(STEPS):
        x, y = batch(step, rank)
        of.backward(loss(of, x, y))
        of.step()
    same(of.module, want, f"stage {stage}")
    of.save_checkpoint(folder[0], tag=f"stage{stage}")
    again = engine(stage)
    again.load_checkpoint(folder[0], tag=f"stage{stage}")
    same(again.module, want, f"stage {stage}, loaded")

dist.barrier()
dist.destroy_process_group()
sys.stdout.write(f"rank {rank} of {RANKS} trains by DeepSpeed\n")
