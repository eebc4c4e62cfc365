"""Who waits at once for a short collective runs it, and what nobody waits for goes on."""

import threading
import time

import torch
import torch.distributed as dist

import gompi_torch

dist.init_process_group("gompi")
rank, size = dist.get_rank(), dist.get_world_size()
store = dist.distributed_c10d._get_default_store()
t = torch.ones(2)


def switches(thread):
    """How often a thread has blocked."""
    with open(f"/proc/self/task/{thread}/status") as f:
        return int(next(line for line in f if line.startswith("voluntary_ctxt_switches")).split()[1])


for r in range(size):  # the others come late, so that it is not this thread that runs it
    if r == rank:
        future = dist.all_reduce(t, async_op=True).get_future().then(lambda _: threading.get_native_id())
        store.set(f"{r} has called", "")
        helper = future.wait()
    else:
        store.get(f"{r} has called")
        dist.all_reduce(t)
assert helper != threading.get_native_id()
for call in (lambda: dist.all_reduce(t, async_op=True).wait(), lambda: [w.wait() for w in [dist.all_reduce(t, async_op=True) for _ in range(3)]]):
    dist.barrier()
    before = switches(helper)
    for _ in range(1000):
        call()
    woken = switches(helper) - before
    assert woken < 400, f"the thread was woken {woken} times for 1000 waits"

for i in range(20):
    work = dist.all_reduce(t, async_op=rank == 0)
    if rank == 0:  # it waits for others by other ways
        if i % 2:
            store.get(f"over {i}")
        while not work.is_completed():
            time.sleep(0)
    else:
        store.set(f"over {i}", "")
print(f"rank {rank} is told")
