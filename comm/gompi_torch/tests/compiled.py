"""What torch.compile makes of collectives, and functional collectives: as with gloo, and as without
torch.compile."""

import sys
import warnings

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.nn.parallel import DistributedDataParallel

import gompi_torch
import sharding

warnings.simplefilter("ignore")
dist.init_process_group("gompi")
rank, size = dist.get_rank(), dist.get_world_size()
gloo = dist.new_group(backend="gloo")
by_sum = not sharding.averages(gloo)


def written(x, group):
    """Collectives as scripts write them, which torch.compile makes functional."""
    y = x * 2
    dist.all_reduce(y, group=group)
    gathered = torch.empty(size * y.shape[0], y.shape[1])
    dist.all_gather_into_tensor(gathered, y + rank, group=group)
    mine = torch.empty_like(y)
    dist.reduce_scatter_tensor(mine, gathered * (rank + 1), op=dist.ReduceOp.SUM, group=group)
    return mine + 1


def exchanged(x, group):
    """Functional ones, which return what waits when it is used."""
    a = functional.all_reduce(x, "avg" if group is not gloo else "sum", group)
    a = a if group is not gloo else a / size
    b = functional.all_gather_tensor(x * (rank + 1), 1, group)
    c = functional.reduce_scatter_tensor(b.T.contiguous(), "sum", 0, group)
    d = functional.all_to_all_single(x.repeat(size, 1), None, None, group)
    e = functional.broadcast(x, size - 1, group)
    several = functional.all_reduce_coalesced([a, e], "max", group)
    return torch.cat([t.flatten() for t in (a, b, c, d, e, *several)])


def gradients(x, group):
    """Functional collectives that pass gradients."""
    x = x.clone().requires_grad_()
    y = functional.all_gather_tensor_autograd(x, 0, group) * torch.arange(size * x.shape[0]).view(-1, 1)
    z = functional.all_to_all_single_autograd(y.repeat(size, 1), None, None, group)
    (gradient,) = torch.autograd.grad(functional.reduce_scatter_tensor_autograd(z, "sum", 0, group).pow(2).sum(), x)
    return gradient


def trained(wrap):
    def run(group, compile):
        torch.manual_seed(1)
        network = wrap(nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 16)), group)
        step = compile(network)
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
        for i in range(3):
            optimizer.zero_grad()
            x = torch.randn(8, 16, generator=torch.Generator().manual_seed(100 * rank + i))
            step(x).pow(2).mean().backward()
            optimizer.step()
        full = [p.full_tensor() if hasattr(p, "full_tensor") else p for p in network.parameters()]
        return torch.cat([p.detach().flatten() for p in full])

    return run


def called(f):
    def run(group, compile):
        x = torch.arange(12.0).view(6, 2) + rank
        return compile(lambda x: f(x, group))(x)

    return run


def sharded(network, group):
    return sharding.shard((network[0], network), by_sum, mesh=DeviceMesh.from_group(group, "cpu"))


WAYS = {
    "collectives as written": (called(written), True),
    "functional collectives": (called(exchanged), True),
    "their gradients": (called(gradients), False),
    "DDP": (trained(lambda network, group: DistributedDataParallel(network, process_group=group)), False),
    "FSDP2": (trained(sharded), False),
}

for name, (way, in_one) in WAYS.items():
    want = way(gloo, lambda f: f)
    for compiler in (None, "aot_eager", *(["inductor"] if sys.argv[1:] == ["inductor"] else [])):
        torch.compiler.reset()
        have = way(dist.group.WORLD, (lambda f: torch.compile(f, backend=compiler, fullgraph=in_one)) if compiler else lambda f: f)
        same = torch.equal(have, want) if size <= 2 and compiler != "inductor" else torch.allclose(have, want, 1e-4, 1e-5)
        assert same, f"rank {rank}: {name}, {compiler}: {have} instead of {want}"

dist.barrier()
dist.destroy_process_group()
sys.stdout.write(f"rank {rank} of {size}: {len(WAYS)} compiled programs are as with gloo\n")
