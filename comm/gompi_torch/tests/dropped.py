"""Works, tensors and groups that the program drops while they are under way: what frees them, and the
callbacks of futures, want Python's lock, and nobody who has that waits for them."""

from datetime import timedelta

import torch
import torch.distributed as dist

import gompi_torch

dist.init_process_group("gompi")
rank, size = dist.get_rank(), dist.get_world_size()
right, left = (rank + 1) % size, (rank - 1) % size


def works():
    x = torch.ones(1000)
    for _ in range(3000):
        for _ in range(20):
            dist.all_reduce(torch.ones(2000), async_op=True)
        h = dist.all_reduce(x, async_op=True)
        h.get_future()
        h.wait()
        x.fill_(1)


def groups():
    for _ in range(30):
        g = dist.new_group()
        for _ in range(50):
            dist.all_reduce(torch.ones(20000), async_op=True, group=g)
        summed = dist.all_reduce(torch.ones(3), async_op=True, group=g).get_future().then(lambda f: f.value()[0].sum().item())
        dist.destroy_process_group(g)
        del g
        assert summed.wait() == 3 * size


def messages():
    for i in range(200):
        for _ in range(5):
            dist.irecv(torch.zeros(50, 2).t(), left, tag=i)
            dist.isend(torch.ones(2, 50), right, tag=i)
        got = torch.zeros(2, 50)
        r = dist.irecv(got, left, tag=i)
        s = dist.isend(torch.full((2, 50), float(i)), right, tag=i)
        r.get_future()
        while not r.is_completed():
            pass
        s.wait()
        assert torch.equal(got, torch.full((2, 50), float(i)))


def groups_that_fail():
    """A group that could not be made is not asked for messages."""
    for _ in range(20):
        try:
            dist.new_group(timeout=timedelta(milliseconds=-1))
            raise SystemExit("a group with a negative timeout was made")
        except RuntimeError as e:
            assert "milliseconds is -1" in str(e), e
    for _ in range(3):
        got = torch.zeros(1 << 18)
        dist.send(torch.ones(1 << 18), right)
        dist.recv(got, left)
        assert got.sum() == 1 << 18


for part in (works, groups, messages, groups_that_fail):
    part()
dist.barrier()
print(f"rank {rank} is told")
