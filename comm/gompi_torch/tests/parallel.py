"""Models that lie across ranks: FSDP1 and FSDP2, with one group and in a mesh, tensor and pipeline
parallelism. With gompi their parameters become what they become with gloo, bit by bit for two ranks."""

import sys
import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecisionPolicy, ShardingStrategy
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

import gompi_torch
import sharding

warnings.simplefilter("ignore")
dist.init_process_group("gompi")
rank, size = dist.get_rank(), dist.get_world_size()
WIDTH, STEPS = 24, 3
cpu = torch.device("cpu")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(torch.tanh(self.up(self.norm(x))))


def net():
    torch.manual_seed(1)
    return nn.Sequential(*(Block() for _ in range(4)))


def batch(step, of):
    return torch.randn(8, 4, WIDTH, generator=torch.Generator().manual_seed(100 * of + step))


def train(network, of=0):
    """A few steps with the batches of one rank, or of all."""
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for step in range(STEPS):
        optimizer.zero_grad()
        network(batch(step, of)).pow(2).mean().backward()
        optimizer.step()


def whole(network):
    """All parameters, as on one rank."""
    full = lambda p: p.full_tensor() if isinstance(p, DTensor) else p
    return {name: full(p.detach()).clone() for name, p in network.named_parameters()}


def grid(backend):
    """A mesh of two columns, or of one row, by a backend."""
    shape = (size // 2, 2) if size % 2 == 0 else (1, size)
    places = torch.arange(size).reshape(shape)
    groups = []
    for lines in (places.T, places):
        made = [dist.new_group(line.tolist(), backend=backend) for line in lines]
        groups += [group for group, line in zip(made, lines) if rank in line]
    return DeviceMesh.from_group(groups, "cpu", mesh=places, mesh_dim_names=("data", "model"))


def fsdp1(strategy):
    def run(group, mesh):
        of = (mesh["model"].get_group(), mesh["data"].get_group()) if strategy is ShardingStrategy.HYBRID_SHARD else group
        network = FullyShardedDataParallel(net(), of, strategy, auto_wrap_policy=ModuleWrapPolicy({Block}), device_id=cpu, use_orig_params=True)
        train(network, rank)
        with FullyShardedDataParallel.summon_full_params(network):
            return whole(network)

    return run


def shard(network, mesh, **how):
    return sharding.shard((*network, network), by_sum, mesh=mesh, **how)


def fsdp2(**how):
    def run(group, mesh):
        network = shard(net(), DeviceMesh.from_group(group, "cpu"), **how)
        train(network, rank)
        return whole(network)

    return run


def fsdp2_uneven(group, mesh):
    """A divisor of one's own for gradients, as with batches that differ, and clipped gradients."""
    network = shard(net(), DeviceMesh.from_group(group, "cpu"))
    network.set_gradient_divide_factor(3.0 * size)
    train(network, rank)
    nn.utils.clip_grad_norm_(network.parameters(), 0.01)
    return {**whole(network), "gradient": network[0].up.weight.grad.full_tensor()}


def hsdp2(group, mesh):
    network = shard(net(), mesh)
    train(network, rank)
    return whole(network)


def split(network, mesh):
    for block in network:
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    return network


def sequences(group, mesh):
    """Tensor parallel, and between the products of matrices each rank has a part of the sequence."""
    network, mesh = net(), DeviceMesh.from_group(group, "cpu")
    part = RowwiseParallel(output_layouts=Shard(1), use_local_output=False)
    for block in network:
        parallelize_module(block, mesh, {"norm": SequenceParallel(), "up": ColwiseParallel(input_layouts=Shard(1)), "down": part})
    parallelize_module(network, mesh, PrepareModuleInput(input_layouts=Replicate(), desired_input_layouts=Shard(1)))
    parallelize_module(network, mesh, PrepareModuleOutput(output_layouts=Shard(1), desired_output_layouts=Replicate()))
    train(network)
    return whole(network)


def tensors(group, mesh):
    network = split(net(), DeviceMesh.from_group(group, "cpu"))
    train(network)
    return whole(network)


def tensors_and_fsdp2(group, mesh):
    network = shard(split(net(), mesh["model"]), mesh["data"])
    train(network, mesh["data"].get_local_rank())
    return whole(network)


def pipeline(schedule, stages=1):
    """Each rank has a stage or two; what all have in the end is gathered."""

    def run(group, mesh):
        blocks = net()
        count = size * stages
        mine = [nn.Sequential(*list(blocks)[s * 4 // count : (s + 1) * 4 // count]) for s in range(rank, count, size)]
        of = [PipelineStage(m, rank + i * size, count, cpu, group=group) for i, m in enumerate(mine)]
        loss = lambda y, target: (y - target).pow(2).mean()
        steps = schedule(of if stages > 1 else of[0], n_microbatches=4, loss_fn=loss)
        optimizer = torch.optim.Adam([p for m in mine for p in m.parameters()], lr=0.01)
        for step in range(STEPS):
            optimizer.zero_grad()
            x, y = batch(step, 0), batch(step, 1)
            steps.step(*((x,) if rank == 0 else ()), **({"target": y} if rank == size - 1 else {}))
            optimizer.step()
        parts = [None] * size
        dist.all_gather_object(parts, [whole(m) for m in mine], group=group)
        return {f"{r}.{i}.{name}": p for r, part in enumerate(parts) for i, m in enumerate(part) for name, p in m.items()}

    return run


WAYS = {
    "FSDP1": fsdp1(ShardingStrategy.FULL_SHARD),
    "FSDP1, gradients alone": fsdp1(ShardingStrategy.SHARD_GRAD_OP),
    "FSDP1, a mesh": fsdp1(ShardingStrategy.HYBRID_SHARD),
    "FSDP2": fsdp2(),
    "FSDP2, bfloat16 parameters": fsdp2(mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)),
    "FSDP2, a divisor": fsdp2_uneven,
    "FSDP2, a mesh": hsdp2,
    "tensor parallel": tensors,
    "sequence parallel": sequences,
    "tensor parallel and FSDP2": tensors_and_fsdp2,
    "pipeline, GPipe": pipeline(ScheduleGPipe),
    "pipeline, 1F1B": pipeline(Schedule1F1B),
}
if size == 2:
    WAYS["pipeline, interleaved"] = pipeline(ScheduleInterleaved1F1B, stages=2)

gloo, grids = dist.new_group(backend="gloo"), [grid("gompi"), grid("gloo")]
by_sum = not sharding.averages(gloo)
for name, way in WAYS.items():
    mine, theirs = way(dist.group.WORLD, grids[0]), way(gloo, grids[1])
    for key, a in mine.items():
        b = theirs[key]
        same = torch.equal(a, b) if size <= 2 else torch.allclose(a, b, 1e-4, 1e-5)
        assert same, f"rank {rank}: {name}: {key} differs by {(a - b).abs().max()}"
    assert mine.keys() == theirs.keys() and len(mine) > 10

dist.barrier()
dist.destroy_process_group()
sys.stdout.write(f"rank {rank} of {size}: {len(WAYS)} models across ranks are as with gloo\n")
