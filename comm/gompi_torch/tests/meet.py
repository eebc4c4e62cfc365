"""Ranks that no launcher of gompi's knows meet by torch's store: two that mp.spawn starts, in the way
that the first argument says, or those of torchrun, without arguments."""

import os
import socket
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import gompi_torch


def meet(**how):
    dist.init_process_group("gompi", **how)
    rank, size = dist.get_rank(), dist.get_world_size()
    for group in None, dist.new_group(list(range(size))):
        t = torch.ones(1) + rank
        dist.all_reduce(t, group=group)
        assert t.item() == size * (size + 1) / 2, t
    dist.destroy_process_group()
    # They know each other from now on.
    dist.init_process_group("gompi", rank=rank, world_size=size)
    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.write(f"rank {rank} is there\n")


def spawned(rank, size, way, path, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    hows = {
        "tcp": lambda: {"init_method": f"tcp://127.0.0.1:{port}"},
        "env": lambda: {},
        "file": lambda: {"init_method": f"file://{path}"},
        "store": lambda: {"store": dist.FileStore(path, size)},
    }
    meet(rank=rank, world_size=size, **hows[way]())


if __name__ == "__main__":
    if len(sys.argv) == 1:
        meet()
    else:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        mp.spawn(spawned, args=(2, sys.argv[1], sys.argv[2], port), nprocs=2)
