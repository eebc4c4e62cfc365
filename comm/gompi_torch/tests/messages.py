"""Messages that every rank sends before it receives, at any length, by send and by isend; futures of
messages; and what of several messages comes first."""

import sys
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist

import gompi_torch

dist.init_process_group("gompi")
rank, size = dist.get_rank(), dist.get_world_size()
right, left = (rank + 1) % size, (rank - 1) % size
LENGTHS = (1, (64 << 10) // 8 + 1, (8 << 20) // 8)  # int64: 8 B, a little more than is sent unasked, 8 MiB


def numbered(n, sender, i):
    """n numbers that tell who sends them, and which of its messages they are."""
    return torch.arange(n) * 1000 + 100 * sender + i


def want(got, n, sender, i, what):
    assert torch.equal(got, numbered(n, sender, i)), f"rank {rank}: {what}, {n} numbers, message {i} of {sender}: {got[:3]}"


def ring(n):
    dist.send(numbered(n, rank, 0), right)
    got = torch.zeros(n, dtype=torch.int64)
    dist.recv(got, left)
    want(got, n, left, 0, "ring")


def several(n):
    """Messages of one tag stay in order, and those of another do not wait for them."""
    for i in range(5):
        dist.send(numbered(n, rank, i), right, tag=7)
    dist.send(numbered(3, rank, 9), right, tag=8)
    got = torch.zeros(3, dtype=torch.int64)
    dist.recv(got, left, tag=8)
    want(got, 3, left, 9, "another tag")
    posted = [torch.zeros(n, dtype=torch.int64) for _ in range(5)]
    works = [dist.irecv(t, left, tag=7) for t in posted]
    for i in reversed(range(5)):
        works[i].wait()
        want(posted[i], n, left, i, "several")


def some_posted(n):
    """Of several messages some are received by those that wait for them, and some come early."""
    first = torch.zeros(n, dtype=torch.int64)
    r = dist.irecv(first, left, tag=2)
    for i in range(3):
        dist.send(numbered(n, rank, i), right, tag=2)
    rest = [torch.zeros(n, dtype=torch.int64) for _ in range(2)]
    for t in rest:
        dist.recv(t, left, tag=2)
    r.wait()
    for i, t in enumerate([first, *rest]):
        want(t, n, left, i, "the first one posted")


def any_source(n):
    """Everybody sends to all others, and then receives from whoever comes."""
    others = [r for r in range(size) if r != rank]
    for r in others:
        for i in range(2):
            dist.send(numbered(n, rank, i), r, tag=4)
    seen = dict.fromkeys(others, 0)
    for _ in range(2 * len(others)):
        got = torch.zeros(n, dtype=torch.int64)
        source = dist.recv(got, tag=4)
        want(got, n, source, seen[source], "any source")
        seen[source] += 1
    assert all(count == 2 for count in seen.values()), seen
    dist.barrier()  # else a receive from anybody here takes what a fast rank sends next


def sends_begun(n):
    for wait in (lambda w: w.wait(), poll):
        works = [dist.isend(numbered(n, rank, i), right, tag=5) for i in range(3)]
        for w in reversed(works):
            wait(w)
        for i in range(3):
            got = torch.zeros(n, dtype=torch.int64)
            dist.recv(got, left, tag=5)
            want(got, n, left, i, "isend")


def poll(work):
    while not work.is_completed():
        pass


def batch(n):
    dist.send(numbered(n, rank, 1), right)  # which comes before that of the batch
    got = [torch.zeros(n, dtype=torch.int64) for _ in range(2)]
    ops = [
        dist.P2POp(dist.isend, numbered(n, rank, 2), right),
        dist.P2POp(dist.irecv, got[0], left),
        dist.P2POp(dist.irecv, got[1], left),
    ]
    for w in dist.batch_isend_irecv(ops):
        w.wait()
    want(got[0], n, left, 1, "before the batch")
    want(got[1], n, left, 2, "batch")


def two_groups(n):
    """Some send in one group, and some in another."""
    other = dist.new_group(list(range(size)))
    mine, others = (None, other) if rank % 2 == 0 else (other, None)
    dist.send(numbered(n, rank, 0), right, group=mine)
    got = torch.zeros(n, dtype=torch.int64)
    dist.recv(got, left, group=mine if left % 2 == rank % 2 else others)
    want(got, n, left, 0, "two groups")
    dist.barrier()
    dist.destroy_process_group(other)


def futures(n):
    got = torch.zeros(n, dtype=torch.int64)
    received = dist.irecv(got, left, tag=6).get_future()
    assert not received.done()
    dist.barrier()
    # A callback may wait for a message that comes later.
    later = torch.zeros(n, dtype=torch.int64)

    def then(f):
        dist.irecv(later, left, tag=6).get_future().wait()
        return f.value()[0] + later

    total = received.then(then)
    sent = [dist.isend(numbered(n, rank, i), right, tag=6).get_future() for i in range(2)]
    for f in sent:
        f.wait()
    want(received.wait()[0], n, left, 0, "future")
    assert torch.equal(total.wait(), numbered(n, left, 0) + numbered(n, left, 1))
    # It is there when wait() has returned, and also for a message that is over.
    w = dist.irecv(got, left, tag=6)
    f = w.get_future()
    dist.send(numbered(n, rank, 2), right, tag=6)
    w.wait()
    want(f.wait()[0], n, left, 2, "future after wait")
    assert w.get_future().done() and w.get_future().value()[0].data_ptr() == got.data_ptr()


def many_futures():
    """They complete in the order of their messages, not in that of the calls."""
    got = [torch.zeros(1, dtype=torch.int64) for _ in range(100)]
    fs = [dist.irecv(t, left, tag=10 + i).get_future() for i, t in enumerate(got)]
    for i in reversed(range(100)):
        dist.send(numbered(1, rank, i), right, tag=10 + i)
        want(fs[i].wait()[0], 1, left, i, "one of many futures")


def fails(what, text, f):
    try:
        f()
    except RuntimeError as e:
        assert text in str(e), f"{what}: {text!r} is not in {e}"
    else:
        raise AssertionError(f"{what} does not fail")


def wrong_ones(n):
    """What does not fit fails as it does otherwise, whether it came early or not."""
    short, other = torch.zeros(n - 1, dtype=torch.int64), torch.zeros(n, dtype=torch.float64)
    for i in range(2):
        dist.send(numbered(n, rank, i), right)
    fails("a short tensor", "longer than the buffer", lambda: dist.recv(short, left))
    assert torch.equal(short, numbered(n, left, 0)[: n - 1])
    fails("another type", "another element type", lambda: dist.recv(other, left))
    f = dist.irecv(short, left).get_future()
    dist.send(numbered(n, rank, 0), right)
    fails("its future", "longer than the buffer", f.wait)


def more_than_is_kept():
    """288 MiB before anybody receives: 256 are kept at once, and then a message each second."""
    n = (16 << 20) // 8
    for i in range(18):
        dist.send(numbered(n, rank, i), right)
    got = torch.zeros(n, dtype=torch.int64)
    for i in range(18):
        dist.recv(got, left)
        want(got, n, left, i, "more than is kept")


def threads(n):
    """A thread that receives while another sends gets each message once, in order."""
    got = [torch.zeros(n, dtype=torch.int64) for _ in range(6)]
    receiver = threading.Thread(target=lambda: [dist.recv(t, left, tag=3) for t in got])
    receiver.start()
    for i in range(6):
        dist.send(numbered(n, rank, i), right, tag=3)
    receiver.join()
    for i, t in enumerate(got):
        want(t, n, left, i, "threads")


def two_wait(n):
    """Of two threads that wait for one message each has its own limit."""
    got, errors = torch.zeros(n, dtype=torch.int64), []
    w = dist.irecv(got, left, tag=9)

    def waits():
        try:
            w.wait(timedelta(seconds=30))
        except RuntimeError as e:
            errors.append(e)

    other = threading.Thread(target=waits)
    other.start()
    for _ in range(3):  # the other thread is there first, in the end
        fails("a short wait", "is not over after 20 ms", lambda: w.wait(timedelta(milliseconds=20)))
    dist.barrier()
    dist.send(numbered(n, rank, 0), right, tag=9)
    other.join()
    assert not errors, errors
    w.wait()
    want(got, n, left, 0, "two wait")


def others_run_while_one_polls():
    """A thread that asks again and again whether a send is over lets others run, whatever Python does."""
    store = dist.distributed_c10d._get_default_store()
    n, got, told = 1 << 20, torch.zeros(1, dtype=torch.int64), []
    if rank == 1:
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1000)
        other = threading.Thread(target=lambda: told.append(dist.recv(got, 0)))
        other.start()
        w = dist.isend(numbered(n, rank, 0), 0)
        store.set("polls", "")
        late = time.monotonic() + 30
        while not told:
            w.is_completed()
            assert time.monotonic() < late, "the thread that has its message does not run"
        sys.setswitchinterval(interval)
        other.join()
        store.set("has polled", "")
        w.wait()
    elif rank == 0:
        store.wait(["polls"])
        dist.send(torch.ones(1, dtype=torch.int64), 1)
        store.wait(["has polled"])
        got = torch.zeros(n, dtype=torch.int64)
        dist.recv(got, 1)
        want(got, n, 1, 0, "polls")


parts = [ring, several, some_posted, any_source, sends_begun, batch, two_groups, futures, threads, two_wait]
if sys.argv[1:] == ["large"]:
    more_than_is_kept()
else:
    for part in parts:
        for n in LENGTHS:
            part(n)
    for n in LENGTHS[1:]:
        wrong_ones(n)
    many_futures()
    others_run_while_one_polls()
dist.barrier()
print(f"rank {rank} has all messages")
