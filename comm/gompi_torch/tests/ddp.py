"""DistributedDataParallel and what is built on it: with gompi the parameters become what they become
with gloo, bit by bit for two ranks."""

import copy
import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, post_localSGD_hook, powerSGD_hook
from torch.distributed.algorithms.join import Join
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.optim import PostLocalSGDOptimizer, ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP

import gompi_torch
from gompi_torch import _C

warnings.simplefilter("ignore", UserWarning)
dist.init_process_group("gompi")
rank, size = dist.get_rank(), dist.get_world_size()
gloo = dist.new_group(backend="gloo")
torch.manual_seed(1)


class Net(nn.Module):
    def __init__(self, sparse=False):
        super().__init__()
        self.embed = nn.Embedding(50, 16, sparse=sparse)
        self.body = nn.Sequential(nn.Linear(16, 300, bias=False), nn.BatchNorm1d(300), nn.Tanh(), nn.Linear(300, 300), nn.Tanh())
        self.head = nn.Linear(300, 4)
        self.spare = nn.Linear(300, 4)

    def forward(self, x, spare=False):
        h = self.body(self.embed(x).mean(1))
        return self.spare(h) if spare else self.head(h)


def batch(step):
    g = torch.Generator().manual_seed(1000 * rank + step)
    return torch.randint(0, 50, (8, 5), generator=g), torch.randint(0, 4, (8,), generator=g)


def train(network, optimizer, steps=6, spare=lambda step: False):
    for step in range(steps):
        x, y = batch(step)
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(x, spare(step)), y).backward()
        optimizer.step()


def sgd(network):
    return torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)


def plain(net, group):
    network = DDP(net, process_group=group, find_unused_parameters=True)
    train(network, sgd(network))


def bucket_views(net, group):
    network = DDP(net, process_group=group, gradient_as_bucket_view=True, bucket_cap_mb=0.1, find_unused_parameters=True)
    train(network, sgd(network))


def unused(net, group):
    network = DDP(net, process_group=group, find_unused_parameters=True)
    train(network, sgd(network), spare=lambda step: (step + rank) % 2 == 0)


def static_graph(net, group):
    network = DDP(net, process_group=group, static_graph=True)
    train(network, sgd(network))


def no_sync(net, group):
    network = DDP(net, process_group=group, find_unused_parameters=True)
    optimizer = sgd(network)
    for step in range(6):
        x, y = batch(step)
        if step % 3 < 2:
            with network.no_sync():
                nn.functional.cross_entropy(network(x), y).backward()
            continue
        nn.functional.cross_entropy(network(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()


def hooked(state_and_hook):
    def run(net, group):
        network = DDP(net, process_group=group, find_unused_parameters=True)
        network.register_comm_hook(*state_and_hook(group))
        train(network, sgd(network))

    return run


def power_sgd(net, group):
    """Its callbacks call collectives, so nothing else may: there is one bucket, and all is used."""
    network = DDP(net, process_group=group)
    state = powerSGD_hook.PowerSGDState(group, matrix_approximation_rank=1, start_powerSGD_iter=2, random_seed=3)
    network.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    train(network, sgd(network))


def bf16(group, bucket):
    """bf16_compress_hook, which torch 1.13 refuses by its name where there is no GPU."""
    return default_hooks.bf16_compress_hook(group, bucket)


def join(net, group):
    network = DDP(net, process_group=group, find_unused_parameters=True)
    optimizer = sgd(network)
    with network.join():
        train(network, optimizer, steps=3 + 2 * rank)


def join_zero(net, group):
    network = DDP(net, process_group=group, find_unused_parameters=True)
    optimizer = ZeroRedundancyOptimizer(network.parameters(), torch.optim.SGD, process_group=group, lr=0.1)
    with Join([network, optimizer]):
        train(network, optimizer, steps=3 + 2 * rank)


def sparse(net, group):
    network = DDP(net, process_group=group, find_unused_parameters=True)
    train(network, torch.optim.SGD(network.parameters(), lr=0.1))


def zero(net, group):
    network = DDP(net, process_group=group, find_unused_parameters=True)
    optimizer = ZeroRedundancyOptimizer(network.parameters(), torch.optim.Adam, process_group=group, lr=0.01)
    train(network, optimizer)
    optimizer.consolidate_state_dict(to=0)


def post_local_sgd(net, group):
    network = DDP(net, process_group=group, find_unused_parameters=True)
    state = post_localSGD_hook.PostLocalSGDState(process_group=group, subgroup=None, start_localSGD_iter=2, post_local_gradient_allreduce=False)
    network.register_comm_hook(state, post_localSGD_hook.post_localSGD_hook)
    averager = PeriodicModelAverager(period=2, warmup_steps=2, process_group=group)
    train(network, PostLocalSGDOptimizer(sgd(network), averager))


WAYS = {
    "plain": plain,
    "bucket views": bucket_views,
    "unused parameters": unused,
    "static graph": static_graph,
    "no_sync": no_sync,
    "fp16 hook": hooked(lambda g: (g, default_hooks.fp16_compress_hook)),
    "bf16 hook": hooked(lambda g: (g, bf16)),
    "PowerSGD": power_sgd,
    "join": join,
    "join of ZeRO-1": join_zero,
    "sparse embeddings": sparse,
    "ZeRO-1": zero,
    "post-local SGD": post_local_sgd,
}

lying_in_heap = 0
for name, way in WAYS.items():
    net = Net(sparse=name.startswith("sparse"))
    if name in ("static graph", "PowerSGD"):
        net.spare.requires_grad_(False)
    dist.broadcast(torch.cat([p.detach().flatten() for p in net.parameters()]), 0)
    mine, theirs = copy.deepcopy(net), copy.deepcopy(net)
    torch.manual_seed(7)
    way(mine, dist.group.WORLD)
    lying_in_heap = max(lying_in_heap, _C.heap_tensors())
    if name == "bf16 hook":  # gloo has no bfloat16
        way = WAYS["plain"]
    torch.manual_seed(7)
    way(theirs, gloo)
    exact = size <= 2 and name != "bf16 hook"
    tolerance = 0.05 if name in ("bf16 hook", "fp16 hook") else 1e-4
    for (key, a), b in zip(mine.state_dict().items(), theirs.state_dict().values()):
        same = torch.equal(a, b) if exact else torch.allclose(a.float(), b.float(), tolerance, tolerance)
        assert same, f"rank {rank}: {name}: {key} differs by {(a - b).abs().max()}"

print(f"rank {rank} of {size}: {len(WAYS)} ways of training, gradients in the heap: {lying_in_heap > 0}")
