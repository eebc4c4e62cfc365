"""The rule of timing, the command line and the rows that ddpcomm.py and ddpsteps.py share.

It has to stay what bench/internal/measure does, constant by constant. It is imported before torch:
each rank computes with one thread, and some libraries are told so by variables alone.
"""
import argparse
import math
import os
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import torch
import torch.distributed as dist

WARM_UPS, FEW_WARM_UPS = 8, 3
LEAST_ITERS, FEW_LEAST, BIG_BYTES, MOST_ITERS, GROWTH = 5, 3, 16 << 20, 1 << 17, 8
HEADER = "impl,op,np,bytes,usec_median,usec_min,usec_p99,iters,usec_b2b,algbw_gbps,busbw_gbps"


def seconds(text):
    return float(text[:-2]) / 1e3 if text.endswith("ms") else float(text.rstrip("s"))


def flags(prog):
    p = argparse.ArgumentParser(prog=prog, allow_abbrev=False)
    p.add_argument("-impl", default="torch")
    p.add_argument("-format", default="csv", choices=["csv"])
    p.add_argument("-budget", default=0.06, type=seconds)
    p.add_argument("--backend", default="gloo", choices=["gloo", "gompi"])
    return p


def join(backend):
    """Makes this process a rank and returns its number and how many there are."""
    torch.set_num_threads(1)
    if backend == "gompi":
        import gompi_torch  # noqa: F401
    dist.init_process_group(backend)
    return dist.get_rank(), dist.get_world_size()


def leave():
    # gloo of torch 1.13 hangs if a thread of its own still holds a tensor of the last call.
    time.sleep(0.2)
    dist.destroy_process_group()


def agree(x):
    """The largest x of all ranks, each of which has a whole number."""
    t = torch.tensor([x])
    dist.all_reduce(t, dist.ReduceOp.MAX)
    return int(t)


def next_batch(done, spent, budget):
    """How many iterations follow so many that took spent ns, 0 if the budget in s is over."""
    budget *= 1e9
    if spent >= budget:
        return 0
    return int(min(done * (budget - spent) / spent, GROWTH * done, MOST_ITERS - done))


def sample(iteration, least, budget):
    """What iteration returns, until the budget is spent, at least so often."""
    got, spent, batch = [], 0, least
    while batch > 0:
        start = time.perf_counter_ns()
        got.extend(iteration() for _ in range(batch))
        spent += max(agree(time.perf_counter_ns() - start), 1)
        batch = next_batch(len(got), spent, budget)
    return got


def slowest(times):
    """The times of the slowest rank, sorted; for rank 0 alone."""
    most = torch.tensor(times)
    dist.reduce(most, 0, dist.ReduceOp.MAX)
    return sorted(most.tolist())


def quantile(ascending, q):
    return ascending[max(math.ceil(q * len(ascending)) - 1, 0)]


def row(impl, op, nbytes, times, b2b=0):
    """Prints a row of the times of the slowest rank, and of as many calls back to back, in ns."""
    world = dist.get_world_size()
    median = quantile(times, 0.5) / 1e3
    alg = nbytes / median / 1e3 if median > 0 else 0
    print(
        f"{impl},{op},{world},{nbytes},{median:.3f},{times[0] / 1e3:.3f},{quantile(times, 0.99) / 1e3:.3f},{len(times)},"
        f"{b2b / len(times) / 1e3:.3f},{alg:.4f},{alg * 2 * (world - 1) / world:.4f}",
        flush=True,
    )
