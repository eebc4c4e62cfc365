"""What DistributedDataParallel's communication costs, as gompi-bench measures ddp-resnet50 and its
neighbours: the time of a backward pass that computes nothing but the derivative of a sum. The
forward pass before it is off the clock.

    gompirun -bind-to none -np 2 python3 ddpcomm.py --backend gompi -models FILE ddp-resnet50

A line "tensors NAME LENGTH..." of FILE has the length of each parameter of a model, from the first
layer to the last. With --unsent nothing is sent: what autograd and DDP's own copies cost.
"""
import ddprule as rule  # before torch

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Parameters(nn.Module):
    """The parameters of a model without its work: each is summed."""

    def __init__(self, lengths):
        super().__init__()
        self.all = nn.ParameterList(nn.Parameter(torch.zeros(n)) for n in lengths)

    def forward(self, x):
        return sum(p.sum() for p in self.all) * x


def unsent(_, bucket: dist.GradBucket):
    """A communication hook that leaves the bucket as it is."""
    done = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


def lengths_of(file, name):
    with open(file) as lines:
        for line in lines:
            words = line.split()
            if words[:2] == ["tensors", name]:
                return [int(w) for w in words[2:]]
    raise SystemExit(f"ddpcomm: {file} has no line {name}")


class Model:
    def __init__(self, name, args):
        lengths = lengths_of(args.file, name)
        self.name, self.args, self.bytes = name, args, 4 * sum(lengths)
        self.parallel = DistributedDataParallel(Parameters(lengths))
        if args.unsent:
            self.parallel.register_comm_hook(None, unsent)

    def step(self):
        """Returns the ns of a backward pass, after a barrier."""
        self.parallel.zero_grad()
        loss = self.parallel(torch.tensor(rank + 1.0))
        dist.barrier()
        start = time.perf_counter_ns()
        loss.backward()
        return time.perf_counter_ns() - start

    def check(self):
        want = rank + 1 if self.args.unsent else (world + 1) / 2
        if rule.agree(int(any(bool((p.grad != want).any()) for p in self.parallel.parameters()))):
            raise SystemExit(f"ddpcomm: {self.name}: a gradient is not the average {want}")

    def measure(self):
        big = self.bytes > rule.BIG_BYTES
        for _ in range(rule.FEW_WARM_UPS if big else rule.WARM_UPS):
            self.step()
            self.check()
        least = rule.FEW_LEAST if big else rule.LEAST_ITERS
        times = rule.slowest(rule.sample(self.step, least, self.args.budget))
        if rank == 0:
            rule.row(self.args.impl, self.name, self.bytes, times)


flags = rule.flags("ddpcomm")
flags.add_argument("-models", dest="file", required=True)
flags.add_argument("--unsent", action="store_true")
flags.add_argument("models", nargs="+")
arguments = flags.parse_intermixed_args()
rank, world = rule.join(arguments.backend)
if rank == 0:
    print(rule.HEADER, flush=True)
for model in arguments.models:
    Model(model, arguments).measure()
rule.leave()
