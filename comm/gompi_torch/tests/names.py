"""A script that knows nothing of gompi, and asks for backends by all names that gompi is taken for, as do
children of its ranks."""

import multiprocessing
import os
import socket
import sys

import torch
import torch.distributed as dist

is_new = torch.__version__ >= (2, 15)


def by(backend):
    """Asks for a backend, and checks that it is gompi."""
    dist.init_process_group(backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    groups = [dist.group.WORLD, dist.new_group(list(range(size))), dist.new_group(list(range(size)), backend=backend or "gloo")]
    for group in groups:
        t = torch.ones(2) + rank
        dist.all_reduce(t, group=group)
        assert t.tolist() == [size * (size + 1) / 2] * 2, (backend, t)
        if torch.__version__ >= "2":
            assert group._get_backend(torch.device("cpu")).name() == "gompi", backend
        name = dist.get_backend(group)
        if is_new:  # the script is told what it has said
            assert name in ("undefined", "gloo") if backend is None else name == backend, (backend, name)
        else:
            assert "gompi" in name, (backend, name)
    dist.monitored_barrier()
    ranks = [None] * size
    dist.all_gather_object(ranks, rank)
    assert ranks == list(range(size)), ranks


def child(rank, size, port):
    """As that which writes checkpoints for torch.distributed.checkpoint."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(size))
    by("gloo")
    dist.destroy_process_group()


def main():
    names = ["gloo", None, "mpi", "nccl"]
    if torch.__version__ >= "2":
        names += ["cpu:gloo", "cpu:gloo,cuda:nccl"]
    for backend in names:
        by(backend)
        rank, size = dist.get_rank(), dist.get_world_size()
        if backend != names[-1]:
            dist.destroy_process_group()
    if torch.__version__ >= (2, 5):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = torch.tensor([s.getsockname()[1]])
        dist.broadcast(port, 0)
        process = multiprocessing.get_context("spawn").Process(target=child, args=(rank, size, port.item()))
        process.start()
        process.join()
        assert process.exitcode == 0, process.exitcode
    dist.destroy_process_group()
    sys.stdout.write(f"rank {rank} has gompi by all names\n")


if __name__ == "__main__":
    main()
