"""torchbench is gompi-bench for PyTorch's gloo: the same operations as far as gloo
has them, the same flags, rule of timing and CSV, so that the two can be compared
cell by cell. It finds the other ranks by torch's variables:

    gompirun -np 2 python3 torchbench.py -impl gloo -sizes 8,64K,4M latency allreduce

It has to stay what bench/internal/measure does, constant by constant. Where gloo
works in place alone (reduce, allreduce), it does: it is not charged for a copy.
With --device cuda the tensors are on GPUs, which the ranks take in turn, and a call
is over when the GPU is done; --backend nccl sends them by NCCL. --backend gompi is gompi_torch
(examples/pytorch), with --alloc with tensors where gradients lie: in gompi's heap.
"""
import argparse
import contextlib
import datetime
import os
import sys
import time

import numpy as np
import torch
import torch.distributed as dist

WARM_UPS, FEW_WARM_UPS = 8, 3
LEAST_ITERS, FEW_LEAST, BIG_BYTES, MOST_ITERS, GROWTH = 5, 3, 16 << 20, 1 << 17, 8
MOST_WINDOW, LEAST_WINDOW, WINDOW_BYTES = 64, 2, 512 << 20
PERIOD = 1021  # prime: a block in the wrong place does not look right
TYPES = {
    "float32": torch.float32, "float64": torch.float64, "float16": torch.float16, "bfloat16": torch.bfloat16, "uint8": torch.uint8,
    "int8": torch.int8, "int16": torch.int16, "int32": torch.int32, "int64": torch.int64,
}
REDOPS = {"sum": dist.ReduceOp.SUM, "prod": dist.ReduceOp.PRODUCT, "min": dist.ReduceOp.MIN, "max": dist.ReduceOp.MAX}
HEADER = "impl,op,np,bytes,usec_median,usec_min,usec_p99,iters,usec_b2b,algbw_gbps,busbw_gbps"


def size(text):
    shift = {"k": 10, "m": 20, "g": 30}.get(text[-1:].lower(), 0)
    return int(text[:-1] if shift else text) << shift


def seconds(text):
    return float(text[:-2]) / 1e3 if text.endswith("ms") else float(text.rstrip("s"))


def arguments():
    p = argparse.ArgumentParser(prog="torchbench", allow_abbrev=False)
    p.add_argument("-impl", default="gloo")
    p.add_argument("-sizes", default="8,64,1K,16K,64K,256K,1M,4M")
    p.add_argument("-type", default="float32", choices=TYPES)
    p.add_argument("-redop", default="sum", choices=REDOPS)
    p.add_argument("-format", default="csv", choices=["csv"])
    p.add_argument("-budget", default=0.06, type=seconds)
    p.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    p.add_argument("--backend", default="gloo", choices=["gloo", "nccl", "gompi"])
    p.add_argument("--alloc", action="store_true")
    p.add_argument("ops", nargs="+", choices=OPS, metavar="OP")
    return p.parse_intermixed_args()


class Cell:
    """An operation at one size, on one rank: its inputs, its vectors, the call."""

    def __init__(self, name, nbytes):
        self.op, self.bytes = OPS[name], nbytes
        self.n = nbytes // element
        self.window = min(max(WINDOW_BYTES // max(nbytes, 1), LEAST_WINDOW), MOST_WINDOW)
        send, recv = self.op.blocks()
        with gompi_torch.heap() if args.alloc else contextlib.nullcontext():
            self.send = torch.empty(send * self.n, dtype=TYPES[args.type], device=args.device)
            self.recv = torch.empty(recv * self.n, dtype=TYPES[args.type], device=args.device)
        self.sent, self.got = self.blocks(self.send, send), self.blocks(self.recv, recv)
        self.prepare()

    def blocks(self, vector, count):
        return [vector[i * self.n:(i + 1) * self.n] for i in range(count)]

    def prepare(self):
        self.recv.fill_(85)  # no pattern has it
        tile(self.send, pattern(rank))

    def run(self):
        self.op.run(self)
        if args.device == "cuda":
            torch.cuda.synchronize()

    def iteration(self):
        dist.barrier()
        start = time.perf_counter_ns()
        self.run()
        took = time.perf_counter_ns() - start
        return took if self.op.timed() else 0

    def back_to_back(self, calls):
        dist.barrier()
        start = time.perf_counter_ns()
        for _ in range(calls):
            self.run()
        return agree(time.perf_counter_ns() - start if self.op.timed() else 0)

    def measure(self):
        self.run()
        if agree(0 if self.op.right(self) else 1):
            raise SystemExit(f"torchbench: {self.op.name} of {self.bytes} bytes: a rank received wrong data")
        big = self.bytes > BIG_BYTES
        for _ in range(FEW_WARM_UPS if big else WARM_UPS):
            self.iteration()
        times, spent = [], 0
        batch = FEW_LEAST if big else LEAST_ITERS
        while batch > 0:
            start = time.perf_counter_ns()
            times.extend(self.iteration() for _ in range(batch))
            spent += max(agree(time.perf_counter_ns() - start), 1)
            batch = next_batch(len(times), spent)
        b2b = self.back_to_back(len(times))
        slowest = torch.tensor(times)
        dist.reduce(slowest, 0, dist.ReduceOp.MAX)
        if rank == 0:
            self.emit(np.sort(slowest.numpy()), b2b)

    def emit(self, slowest, b2b):
        def quantile(q):
            return slowest[max(int(np.ceil(q * len(slowest))) - 1, 0)]

        per = 1e3 * (self.window if self.op.window else self.op.trips)
        median = quantile(0.5) / per
        alg = self.bytes * self.op.volume() / median / 1e3 if median > 0 else 0
        print(f"{args.impl},{self.op.name},{world},{self.bytes},{median:.3f},{slowest[0] / per:.3f},{quantile(0.99) / per:.3f},"
              f"{len(slowest)},{b2b / len(slowest) / per:.3f},{alg:.4f},{alg * self.op.bus():.4f}", flush=True)


def next_batch(done, spent):
    budget = args.budget * 1e9
    if spent >= budget:
        return 0
    return int(min(done * (budget - spent) / spent, GROWTH * done, MOST_ITERS - done))


def agree(x):
    t = torch.tensor([x])
    dist.all_reduce(t, dist.ReduceOp.MAX)
    return int(t)


# ---- inputs ----

def pattern(r):
    """The elements that rank r's vector repeats: small and whole, so that no order
    of adding rounds; for products powers of two."""
    x = (np.arange(1, PERIOD + 1, dtype=np.uint32) * np.uint32(2654435761)) ^ np.uint32((r + 1) * 2246822519 % 2**32)
    x ^= x >> np.uint32(15)
    x *= np.uint32(2246822519)
    values = (x >> np.uint32(24)) % np.uint32(2 if args.redop == "prod" else 4) + 1
    return torch.from_numpy(values.astype(np.int64)).to(TYPES[args.type]).to(args.device)


def tile(to, elements):
    whole = len(to) // PERIOD * PERIOD
    to[:whole].view(-1, PERIOD).copy_(elements)
    to[whole:] = elements[: len(to) - whole]


def holds(got, elements, phase):
    """Whether got is elements, from index phase on, again and again."""
    want = torch.empty_like(got)
    tile(want, elements.roll(-(phase % PERIOD)))
    return torch.equal(got, want)


def reduced():
    combine = {"sum": torch.add, "prod": torch.mul, "min": torch.minimum, "max": torch.maximum}[args.redop]
    want = pattern(0)
    for r in range(1, world):
        want = combine(want, pattern(r))
    return want


# ---- the calls ----

def peer():
    return {0: 1, 1: 0}.get(rank, -1)


def run_latency(k):
    if rank == 0:
        dist.send(k.send, 1)
        dist.recv(k.recv, 1)
    elif rank == 1:
        dist.recv(k.recv, 0)
        dist.send(k.send, 0)


def run_bw(k):
    if rank == 0:
        for r in [dist.isend(k.send, 1) for _ in range(k.window)]:
            r.wait()
        dist.recv(ack, 1)
    elif rank == 1:
        for r in [dist.irecv(k.recv, 0) for _ in range(k.window)]:
            r.wait()
        dist.send(ack, 0)


def run_allreduce(k): dist.all_reduce(k.send, REDOPS[args.redop])
def run_iallreduce(k): dist.all_reduce(k.send, REDOPS[args.redop], async_op=True).wait()
def run_reduce(k): dist.reduce(k.send, 0, REDOPS[args.redop])
def run_bcast(k): dist.broadcast(k.send if rank == 0 else k.recv, 0)
def run_allgather(k): dist.all_gather(k.got, k.send)
def run_gather(k): dist.gather(k.send, k.got if rank == 0 else None, 0)
def run_scatter(k): dist.scatter(k.recv, k.sent if rank == 0 else None, 0)
def run_alltoall(k): dist.all_to_all_single(k.recv, k.send)
def run_barrier(_): dist.barrier()


def from_each(k, phase):
    return all(holds(block, pattern(r), phase) for r, block in enumerate(k.got))


class Op:
    def __init__(self, run, blocks, right, timed=lambda: True, window=False, trips=1, volume=lambda: 1, bus=lambda: 1, data=True):
        self.run, self.blocks, self.right, self.timed, self.window = run, blocks, right, timed, window
        self.trips, self.volume, self.bus, self.data = trips, volume, bus, data


def others(): return (world - 1) / world


OPS = {
    "latency": Op(run_latency, lambda: (rank < 2, rank < 2), lambda k: peer() < 0 or holds(k.recv, pattern(peer()), 0), timed=lambda: rank == 0, trips=2),
    "bw": Op(run_bw, lambda: (rank == 0, rank == 1), lambda k: rank != 1 or holds(k.recv, pattern(0), 0), timed=lambda: rank == 0, window=True),
    "barrier": Op(run_barrier, lambda: (0, 0), lambda k: True, volume=lambda: 0, data=False),
    "bcast": Op(run_bcast, lambda: (rank == 0, rank != 0), lambda k: rank == 0 or holds(k.recv, pattern(0), 0)),
    "reduce": Op(run_reduce, lambda: (1, 0), lambda k: rank != 0 or holds(k.send, reduced(), 0)),
    "allreduce": Op(run_allreduce, lambda: (1, 0), lambda k: holds(k.send, reduced(), 0), bus=lambda: 2 * others()),
    "iallreduce": Op(run_iallreduce, lambda: (1, 0), lambda k: holds(k.send, reduced(), 0), bus=lambda: 2 * others()),
    "allgather": Op(run_allgather, lambda: (1, world), lambda k: from_each(k, 0), volume=lambda: world, bus=others),
    "gather": Op(run_gather, lambda: (1, world * (rank == 0)), lambda k: rank != 0 or from_each(k, 0), volume=lambda: world, bus=others),
    "scatter": Op(run_scatter, lambda: (world * (rank == 0), 1), lambda k: holds(k.recv, pattern(0), rank * k.n), volume=lambda: world, bus=others),
    "alltoall": Op(run_alltoall, lambda: (world, world), lambda k: from_each(k, rank * k.n), volume=lambda: world, bus=others),
}
for name, op in OPS.items():
    op.name = name

args = arguments()
torch.set_num_threads(1)
if args.device == "cuda":
    if not torch.cuda.is_available():
        raise SystemExit("torchbench: --device cuda: torch sees no GPU")
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())
if args.backend == "gompi":
    import gompi_torch
backend = "cpu:gloo,cuda:nccl" if args.backend == "nccl" else args.backend
dist.init_process_group(backend, timeout=datetime.timedelta(seconds=60))
rank, world = dist.get_rank(), dist.get_world_size()
element = torch.empty(0, dtype=TYPES[args.type]).element_size()
ack = torch.zeros(1, dtype=torch.uint8)
if rank == 0:
    print(HEADER, flush=True)
for name in args.ops:
    for nbytes in [size(s) for s in args.sizes.split(",")] if OPS[name].data else [0]:
        Cell(name, nbytes).measure()
dist.destroy_process_group()
sys.exit(0)
