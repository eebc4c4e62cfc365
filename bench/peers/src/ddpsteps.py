"""Training steps of a model whose first weights and batches are in a file, by PyTorch and
DistributedDataParallel, part by part: what examples/steps is for gompi, which writes the file.

    gompirun -bind-to none -np 2 python3 ddpsteps.py --backend gompi -in DIR -losses mlp
    gompirun -bind-to none -np 2 python3 ddpsteps.py --backend gompi -in DIR mlp
"""
import ddprule as rule  # before torch

import contextlib
import json
import os
import statistics
import time

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

LOSS_STEPS, WARM_UPS, LEAST_STEPS = 20, 3, 5
BUSY_SIDE, BUSY_TRIALS = 256, 600


class Pictures(nn.Module):
    """A row of a batch as a picture: pixels line by line, each with its channels side by side."""

    def __init__(self, height, width, channels):
        super().__init__()
        self.shape = (height, width, channels)

    def forward(self, x):
        # A clone, as DDP warns of the strides that a view has with one channel.
        return x.view(-1, *self.shape).permute(0, 3, 1, 2).clone(memory_format=torch.contiguous_format)


class Rows(nn.Module):
    """The inverse of Pictures."""

    def forward(self, x):
        return x.permute(0, 2, 3, 1).flatten(1)


class Problem:
    """A file that steps -write made; its form is in examples/steps/problem.go."""

    def __init__(self, file):
        with open(file, "rb") as f:
            vars(self).update(json.loads(f.readline()))
            self.network = self.build(f)
            size = self.rows * self.inputs
            self.data = []
            for _ in range(self.batches):
                inputs = torch.from_numpy(self.numbers(f, size)).view(self.rows, self.inputs)
                classes = np.frombuffer(f.read(self.rows), np.uint8)
                self.data.append((inputs, torch.from_numpy(classes.astype(np.int64))))
            if f.read(1):
                raise SystemExit(f"ddpsteps: {file} is longer than its header says")

    @staticmethod
    def numbers(f, n):
        return np.frombuffer(f.read(4 * n), "<f4").copy()

    def build(self, f):
        layers, pictures = [], False
        for l in self.layers:
            if l["kind"] == "conv":
                if not pictures:
                    layers.append(Pictures(l["height"], l["width"], l["in"]))
                k, i, o = l["k"], l["in"], l["out"]
                layer = nn.Conv2d(i, o, k)
                weight = torch.from_numpy(self.numbers(f, k * k * i * o)).view(o, k, k, i).permute(0, 3, 2, 1)
                pictures = True
            elif l["kind"] == "linear":
                if pictures:
                    layers.append(Rows())
                layer = nn.Linear(l["in"], l["out"])
                weight = torch.from_numpy(self.numbers(f, l["in"] * l["out"])).view(l["in"], l["out"]).T
                pictures = False
            else:
                layers.append({"relu": nn.ReLU, "pool": lambda: nn.MaxPool2d(2)}[l["kind"]]())
                continue
            with torch.no_grad():
                layer.weight.copy_(weight)
                layer.bias.copy_(torch.from_numpy(self.numbers(f, l["out"])))
            layers.append(layer)
        return nn.Sequential(*layers)

    def batch_of(self, step):
        return self.data[(step * world + rank) % len(self.data)]


class Busy:
    """Makes backward longer by so much, by matrix products that nothing needs. Before a parameter's
    gradient is ready it does the parameter's share of them; how many is found out once, by the
    second half of some: a processor may take half a second to come to its speed."""

    def __init__(self, parameters, total):
        self.a, self.out = torch.ones(BUSY_SIDE, BUSY_SIDE), torch.empty(BUSY_SIDE, BUSY_SIDE)
        times = []
        for _ in range(BUSY_TRIALS):
            start = time.perf_counter_ns()
            torch.mm(self.a, self.a, out=self.out)
            times.append(time.perf_counter_ns() - start)
        n = int(1e9 * total / max(rule.agree(int(statistics.median(times[BUSY_TRIALS // 2 :]))), 1))
        every, done, given = sum(p.numel() for p in parameters), 0, 0
        for p in reversed(parameters):  # as backward comes to them
            done += p.numel()
            count = n * done // every - given
            given += count
            if count:
                p.register_hook(lambda _, count=count: self.work(count))

    def work(self, count):
        with torch.no_grad():
            for _ in range(count):
                torch.mm(self.a, self.a, out=self.out)


class Trainer:
    def __init__(self, problem, args):
        self.problem, self.args, self.at = problem, args, 0
        self.parallel = DistributedDataParallel(problem.network, bucket_cap_mb=args.bucket / (1 << 20))
        self.parameters = list(problem.network.parameters())
        self.optimizer = torch.optim.SGD(self.parameters, lr=problem.rate, momentum=problem.momentum)
        self.buckets = None

    def forward(self):
        inputs, classes = self.problem.batch_of(self.at)
        return nn.functional.cross_entropy(self.parallel(inputs), classes)

    def update(self):
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.at += 1

    def losses(self):
        for i in range(LOSS_STEPS):
            loss = self.forward()
            loss.backward()
            self.update()
            mean = loss.detach().double().reshape(1)
            dist.all_reduce(mean)
            if rank == 0:
                print(f"loss {i + 1} {mean.item() / world:.9g}", flush=True)

    def make_buckets(self):
        """Tensors as long as DDP's buckets, where those lie."""
        told = self.parallel._get_ddp_logging_data()
        sizes = told.get("rebuilt_bucket_sizes") or told["bucket_sizes"]
        heap = contextlib.nullcontext()
        if self.args.backend == "gompi":
            import gompi_torch

            heap = gompi_torch.heap()
        with heap:
            return [torch.zeros(int(s) // 4) for s in sizes.split(", ")]

    def one(self):
        """A step, then backward without averages, then the averages alone: their times in ns, a
        barrier before each."""
        dist.barrier()
        begin = time.perf_counter_ns()
        loss = self.forward()
        forward = time.perf_counter_ns()
        loss.backward()
        both = time.perf_counter_ns()
        self.update()
        end = time.perf_counter_ns()
        with self.parallel.no_sync():
            loss = self.forward()
            dist.barrier()
            start = time.perf_counter_ns()
            loss.backward()
            alone = time.perf_counter_ns() - start
        self.optimizer.zero_grad()
        if self.buckets is None:
            self.buckets = self.make_buckets()
        dist.barrier()
        start = time.perf_counter_ns()
        for work in [dist.all_reduce(b, async_op=True) for b in self.buckets]:
            work.wait()
        comm = time.perf_counter_ns() - start
        return forward - begin, alone, both - forward, end - both, end - begin, comm

    def measure(self):
        Busy(self.parameters, self.args.busy)
        for _ in range(WARM_UPS):
            self.one()
        got = torch.tensor(rule.sample(self.one, LEAST_STEPS, self.args.budget))
        dist.all_reduce(got, dist.ReduceOp.MAX)
        forward, alone, both, optimiser, step, comm = (got[:, i].tolist() for i in range(6))
        exposed = [b - a for a, b in zip(alone, both)]
        nbytes = 4 * sum(p.numel() for p in self.parameters)
        parts = {"forward": forward, "backward": alone, "exposed": exposed, "optimiser": optimiser, "step": step, "comm": comm}
        for name, ns in parts.items():
            if rank == 0:
                rule.row(self.args.impl, f"{self.problem.model}/{name}", nbytes, sorted(ns))


flags = rule.flags("ddpsteps")
flags.add_argument("-in", dest="folder", default=".")
flags.add_argument("-losses", action="store_true")
flags.add_argument("-busy", default=0, type=rule.seconds)
flags.add_argument("-bucket", default=25 << 20, type=int)
flags.add_argument("model")
arguments = flags.parse_intermixed_args()
rank, world = rule.join(arguments.backend)
trainer = Trainer(Problem(os.path.join(arguments.folder, arguments.model + ".problem")), arguments)
if arguments.losses:
    trainer.losses()
else:
    if rank == 0:
        print(rule.HEADER, flush=True)
    trainer.measure()
del trainer
rule.leave()
