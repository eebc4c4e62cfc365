"""Rank 1 gets SIGINT while it waits, in several ways: KeyboardInterrupt comes at once. A collective that
it ran is broken on all ranks, and nothing else is. A handler that raises nothing leaves all as it is."""

import signal
import threading
from datetime import timedelta

import torch
import torch.distributed as dist

import gompi_torch
from waiting import signaled

dist.init_process_group("gompi", timeout=timedelta(seconds=60))
rank, size = dist.get_rank(), dist.get_world_size()
store = dist.distributed_c10d._get_default_store()


def interrupted(f):
    """Calls f, which waits, and reports whether KeyboardInterrupt ends it."""
    try:
        signaled(signal.SIGINT, f)
    except KeyboardInterrupt:
        return True
    return False


def others_wait_for(key):
    if rank == 1:
        store.set(key, "")
    else:
        store.wait([key])


# A message goes on, and can be waited for again.
got = torch.zeros(3)
if rank == 1:
    w = dist.irecv(got, 0)

    def waits():
        w.wait()

    assert interrupted(waits)
others_wait_for("received")
if rank == 0:
    dist.send(torch.ones(3), 1)
elif rank == 1:
    w.wait()
    assert got.tolist() == [1, 1, 1]

# So does one for which another thread waits, too.
if rank == 1:
    w = dist.irecv(got, 0)
    other = threading.Thread(target=w.wait)
    other.start()
    try:
        w.wait(timedelta(milliseconds=20))  # then the other one asks for it
    except RuntimeError as e:
        assert "is not over after 20 ms" in str(e), e
    assert interrupted(waits)
others_wait_for("received by two")
if rank == 0:
    dist.send(torch.ones(3) + 1, 1)
elif rank == 1:
    other.join()
    assert got.tolist() == [2, 2, 2]

# So does a long send.
if rank == 1:
    w = dist.isend(torch.ones(1 << 20), 0)
    assert interrupted(waits)
others_wait_for("sent")
if rank == 0:
    got = torch.zeros(1 << 20)
    dist.recv(got, 1)
    assert got.sum() == 1 << 20
elif rank == 1:
    w.wait()

# And a collective that another thread runs, as it does where a wait has a limit.
t = torch.ones(3)
if rank == 1:
    w = dist.all_reduce(t, async_op=True)

    def waits():
        w.wait(timedelta(seconds=60))

    assert interrupted(waits)
others_wait_for("reduced")
if rank == 1:
    w.wait()
else:
    dist.all_reduce(t)
assert t.tolist() == [size] * 3, t

# A handler that raises nothing is called, and the collective goes on.
if rank == 1:
    before = signal.signal(signal.SIGINT, lambda *_: store.set("handled", ""))
    assert not interrupted(lambda: dist.all_reduce(t))
    signal.signal(signal.SIGINT, before)
else:
    store.wait(["handled"])
    dist.all_reduce(t)
assert t.tolist() == [size * size] * 3, t

# A collective that the thread itself runs is broken, on all ranks.
group = dist.new_group(list(range(size)))
if rank == 1:
    assert interrupted(lambda: dist.all_reduce(t, group=group))
others_wait_for("broken")
try:
    dist.all_reduce(t, group=group)
    raise SystemExit(f"rank {rank}: the group is not broken")
except RuntimeError as e:
    assert "interrupted" in str(e) and "rank 1" in str(e), e
u = torch.ones(1)
dist.all_reduce(u)
assert u.item() == size
print(f"rank {rank} is told")
