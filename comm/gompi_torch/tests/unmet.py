"""Ranks that meet by torch's store, one of which does not stay: by the first argument it is killed
before it has come, or is rank 0, which has the store, and leaves right after a monitored_barrier."""

import os
import signal
import sys
from datetime import timedelta

import torch.distributed as dist

import gompi_torch

way, port = sys.argv[1:]
size, timeout = 3, timedelta(seconds=20)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def killed(rank):
    if rank == 1:
        gompi_torch._meet._host = die
    try:
        dist.init_process_group("gompi", f"tcp://127.0.0.1:{port}", timeout, size, rank)
    except RuntimeError as e:
        assert "rank 1 of 3 has not come to init_process_group within 0:00:20" in str(e), e
    else:
        raise AssertionError("two ranks are three")


def leaves(rank):
    dist.init_process_group("gompi", f"tcp://127.0.0.1:{port}", timeout, size, rank)
    for all_of_them in (False, True):
        dist.monitored_barrier(timeout=timeout, wait_all_ranks=all_of_them)


children = {}
for rank in range(size):
    child = os.fork()
    if not child:
        globals()[way](rank)
        sys.stdout.write(f"rank {rank} is told\n")
        sys.stdout.flush()
        os._exit(0)
    children[child] = rank
for _ in children:
    child, status = os.wait()
    assert os.waitstatus_to_exitcode(status) == (-signal.SIGKILL if (way, children[child]) == ("killed", 1) else 0), (children[child], status)
