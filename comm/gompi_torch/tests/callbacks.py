"""Callbacks of futures run on no thread that waits for a work or asks for it: such a thread may hold what
they want, and has modes of its own. What is asked for, but not waited for, runs."""

import itertools
import threading

import torch
import torch.distributed as dist

import gompi_torch

dist.init_process_group("gompi")
rank, size = dist.get_rank(), dist.get_world_size()
store = dist.distributed_c10d._get_default_store()
right, left = (rank + 1) % size, (rank - 1) % size
lock = threading.Lock()


def reduce():
    return dist.all_reduce(torch.ones(4), async_op=True)


def receive():
    return dist.irecv(torch.zeros(4), left)


def look(future):
    with lock:
        return future.value()[0].sum().item(), threading.get_ident(), torch.is_inference_mode_enabled()


def ask(work):
    while not work.is_completed():
        pass


def looks(make, finish, later, key):
    """Has a callback look around, of an earlier work or of the one that is waited for itself."""
    work = make()
    future = work.get_future()
    looked = future.then(look)
    with lock, torch.inference_mode():
        store.set(key, "")
        finish(make() if later else work)
        if not later and finish is not ask:
            future.value()  # it is complete when the wait is over
    total, thread, is_inference = looked.wait()
    assert total == 4 * size and thread != threading.get_ident() and not is_inference, looked.wait()


def helps(make, later, me, key):
    """What another rank does for one that looks, and not before that does."""
    store.get(key)
    for _ in range(1 + later):
        if make is reduce:
            dist.all_reduce(torch.ones(4))
        elif right == me:
            dist.send(torch.full((4,), float(size)), me)


for key, case in enumerate(itertools.product((reduce, receive), (dist.Work.wait, ask), (True, False), range(size))):
    *how, me = case
    key = str(key)
    if me == rank:
        looks(*how, key)
    else:
        helps(how[0], how[2], me, key)

# One that its caller has said to wait for, and asks for instead.
for ask_for in (dist.Work.is_completed, dist.Work.is_success):
    options = dist.AllreduceOptions()
    if hasattr(options, "asyncOp"):
        options.asyncOp = False
    work = dist.group.WORLD.allreduce([torch.ones(4)], options)
    while not ask_for(work):
        pass
    work.wait()
print(f"rank {rank} is told")
