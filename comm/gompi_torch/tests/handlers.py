"""A signal handler of the program does collectives of the group in which the main thread waits: they come
after that, in all ways to wait and of all lengths."""

import signal
from datetime import timedelta
from signal import signal as set_handler

import torch
import torch.distributed as dist

import gompi_torch
from waiting import signaled

dist.init_process_group("gompi", timeout=timedelta(seconds=60))
rank, size = dist.get_rank(), dist.get_world_size()
store = dist.distributed_c10d._get_default_store()


def agree():
    t = torch.ones(1)
    dist.all_reduce(t)
    assert t.item() == size, t


def when_handled(number, n, wait):
    """Rank 0 waits in a collective when it gets the signal; the others come when the handler runs."""
    key = f"handled {number} {n}"
    t = torch.ones(n)
    if rank == 0:

        def handle(*_):
            store.set(key, "")
            agree()

        set_handler(number, handle)
        signaled(number, lambda: wait(t))
    else:
        store.wait([key])
        wait(t)
        agree()
    assert t[0].item() == size, t


def waits(t):
    dist.all_reduce(t, async_op=True).wait()


for n in (4, 1 << 20):
    when_handled(signal.SIGUSR1, n, dist.all_reduce)
    when_handled(signal.SIGUSR2, n, waits)

# A handler that destroys the group of the collective in which the thread waits ends after that.
group = dist.new_group()
t = torch.ones(4)
if rank == 0:

    def destroy(*_):
        store.set("destroyed", "")
        dist.destroy_process_group(group)

    signal.signal(signal.SIGUSR1, destroy)
    signaled(signal.SIGUSR1, lambda: dist.all_reduce(t, group=group))
else:
    store.wait(["destroyed"])
    dist.all_reduce(t, group=group)
assert t[0].item() == size, t
for number in (signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, signal.SIG_DFL)

# Behind gompi_torch's back, a handler is refused what cannot be done.
group = dist.new_group()
if rank == 0:
    import _signal

    def refused(*_):
        try:
            dist.barrier(group)
        except RuntimeError as e:
            assert "a signal handler waits for it" in str(e), e
            store.set("refused", "")

    _signal.signal.__wrapped__(signal.SIGUSR1, refused)
    signaled(signal.SIGUSR1, lambda: dist.all_reduce(t, group=group))
else:
    store.wait(["refused"])
    dist.all_reduce(t, group=group)
    dist.barrier(group)
dist.barrier()
print(f"rank {rank} is told")
