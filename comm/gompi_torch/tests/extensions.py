"""What torch asks of a backend beyond collectives: timeouts of one call and of a group, groups that are
split off, abort, monitored_barrier, and what profilers show. Each where this torch has it."""

import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

import gompi_torch

has = torch.__version__ >= (2, 15)
dist.init_process_group("gompi", timeout=timedelta(seconds=60))
rank, size = dist.get_rank(), dist.get_world_size()
last = size - 1


def fails(what, want, f):
    begin = time.monotonic()
    try:
        f()
    except RuntimeError as e:
        assert want in str(e), f"{what}: {want!r} is not in {e}"
    else:
        raise AssertionError(f"{what} does not fail")
    return time.monotonic() - begin


def monitored():
    world = c10d._get_default_group()
    world.monitored_barrier(timedelta(seconds=30))
    dist.monitored_barrier(timeout=timedelta(seconds=30), wait_all_ranks=True)
    some = dist.new_group(timeout=timedelta(milliseconds=500))
    if rank != last:
        what = f"Rank {last} failed to pass monitoredBarrier in 500 ms"
        fails("monitored_barrier", what, lambda: some.monitored_barrier(timedelta(milliseconds=500)))
        if rank == 0:
            fails("monitored_barrier", "Rank 0 timed out in monitoredBarrier after 0 ms", lambda: some.monitored_barrier(timedelta(0)))
    dist.barrier()


def timeouts():
    one, all_of_it = dist.new_group(), dist.new_group()
    if rank == 0:
        short = timedelta(seconds=1)
        assert fails("barrier", "Timed out waiting", lambda: dist.barrier(one, timeout=short)) < 30
        dist.set_timeout(short, all_of_it)
        assert fails("all_reduce", "Timed out waiting", lambda: dist.all_reduce(torch.ones(1), group=all_of_it)) < 30
    dist.barrier(timeout=timedelta(seconds=30))
    assert c10d._get_default_group()._get_backend(torch.device("cpu")).options._timeout == timedelta(seconds=60)


def splits():
    even, odd = list(range(0, size, 2)), list(range(1, size, 2))
    for order in (even, even[::-1]):
        for again in range(2):
            group = dist.split_group(split_ranks=[order, odd])
            mine = order if rank in order else odd
            assert dist.get_rank(group) == mine.index(rank) and dist.get_world_size(group) == len(mine)
            t = torch.tensor([float(rank)])
            dist.all_reduce(t, group=group)
            assert t.item() == sum(mine), (t, mine)
            dist.destroy_process_group(group)


def aborts():
    group = dist.new_group()
    dist.all_reduce(torch.ones(1), group=group)
    if rank == 0:
        before = group._get_sequence_number_for_group()
        failed = []
        reduce = lambda: dist.all_reduce(torch.ones(1), group=group)
        waits = threading.Thread(target=lambda: failed.append(fails("an all_reduce that is aborted", "", reduce)))
        waits.start()
        while group._get_sequence_number_for_group() == before:
            time.sleep(0.001)
        group.abort()
        waits.join(30)
        assert failed
    dist.barrier()  # other groups are whole
    if rank != 0:
        # The first may end well: rank 0 had given its part.
        fails("all_reduce after another rank's abort", "rank 0", lambda: [dist.all_reduce(torch.ones(1), group=group) for _ in range(2)])


def profiles():
    t, all_of_them, from_any = torch.ones(2, 3), torch.empty(size * 2, 3), torch.empty(4)
    with torch.autograd.profiler.profile(record_shapes=True) as profile:
        c10d._all_gather_base(all_of_them, t)
        if rank == 0:
            dist.send(torch.ones(4), 1)
            dist.send(torch.ones(4), 1)
        if rank == 1:
            dist.recv(from_any, 0)
            dist.recv(from_any)
        dist.barrier()
    shown = [(e.name, e.input_shapes) for e in profile.function_events if e.name.startswith("gompi:")]
    want = [("gompi:all_gather", [[2, 3]])]
    want += [("gompi:send", [[4]])] * 2 if rank == 0 else []
    want += [("gompi:recv", [[4]]), ("gompi:recvAnySource", [[4]])] if rank == 1 else []
    assert sorted(shown) == sorted(want + [("gompi:barrier", [])]), shown


def gathers():
    all_of_them = torch.empty(2 * size) if rank == last else None
    dist.gather_single(torch.full((2,), float(rank)), all_of_them, dst=last)
    if rank == last:
        assert all_of_them.tolist() == [float(r) for r in range(size) for _ in range(2)], all_of_them


monitored()
profiles()
if has:
    timeouts()
    splits()
    aborts()
    gathers()
dist.destroy_process_group()
print(f"rank {rank} has what torch asks for")
