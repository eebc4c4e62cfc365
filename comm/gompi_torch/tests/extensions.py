"""What torch asks of a backend beyond collectives: timeouts of one call and of a group, groups that are
split off, abort, monitored_barrier, what profilers and the flight recorder show, factors of sums, and
types that are only moved. Each where this torch has it. The argument is a folder."""

import json
import os
import sys
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

has = torch.__version__ >= (2, 15)
if has:
    from torch._C._distributed_c10d import ErrorType, _dump_fr_trace_json, _reset_fr_trace

import gompi_torch

dist.init_process_group("gompi", timeout=timedelta(seconds=60))
rank, size = dist.get_rank(), dist.get_world_size()
last = size - 1


def error(group):
    return group._get_backend(torch.device("cpu")).get_error()


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
    short, t = timedelta(seconds=1), torch.ones(1)
    calls = {
        "barrier": lambda g: dist.barrier(g, timeout=short),
        "all_reduce of one limit": lambda g: g.allreduce([t], timeout=short).wait(),
        "broadcast": lambda g: g.broadcast(t, 0, timeout=short).wait(),
        "all_reduce": lambda g: (dist.set_timeout(short, g), dist.all_reduce(t, group=g)),
    }
    for name, call in calls.items():
        group = dist.new_group()
        assert error(group) == ErrorType.SUCCESS
        if rank == (1 if name == "broadcast" else 0):  # which alone waits
            assert fails(name, "Timed out waiting", lambda: call(group)) < 30
            assert error(group) == ErrorType.TIMEOUT
        dist.barrier(timeout=timedelta(seconds=30))
        if rank == 2:
            fails(f"{name} of a broken group", "gave up", lambda: call(group))
            assert error(group) == ErrorType.REMOTE_ERROR
    assert c10d._get_default_group()._get_backend(torch.device("cpu")).options._timeout == timedelta(seconds=60)


def lateness():
    """Who comes when the others' time is over fails as they do, of however few bytes: what they gave is
    taken back. It learns of nothing before: it calls nothing meanwhile."""
    over = [os.path.join(sys.argv[1], f"over{r}") for r in range(last)]
    for how in ("all_reduce", "all_gather", "barrier"):
        group, t = dist.new_group(timeout=timedelta(milliseconds=500)), torch.ones(1)
        while rank == last and not all(os.path.exists(f"{path}.{how}") for path in over):
            time.sleep(0.01)
        calls = {
            "all_reduce": lambda: dist.all_reduce(t, group=group),
            "all_gather": lambda: dist.all_gather([torch.ones(1) for _ in range(size)], t, group=group),
            "barrier": lambda: dist.barrier(group),
        }
        fails(f"{how} of rank {rank}", "", calls[how])
        if rank != last:
            open(f"{over[rank]}.{how}", "w").close()


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


def moves():
    """Types that nobody adds up move as they are."""
    types = [getattr(torch, f"float8_{name}", None) for name in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu")]
    for dtype in filter(None, types):
        bytes_of = lambda r: torch.arange(4, dtype=torch.uint8) + 16 * r
        mine = lambda: bytes_of(rank).view(dtype).clone()
        same = lambda t, r: torch.equal(t.view(torch.uint8), bytes_of(r))
        all_of_them = [torch.empty(4, dtype=dtype) for _ in range(size)]
        dist.all_gather(all_of_them, mine())
        assert all(same(t, r) for r, t in enumerate(all_of_them)), dtype
        turned = [torch.empty(4, dtype=dtype) for _ in range(size)]
        dist.all_to_all(turned, [mine() for _ in range(size)])
        assert all(same(t, r) for r, t in enumerate(turned)), dtype
        gap = torch.empty(8, dtype=dtype)[::2]
        gap.copy_(mine())
        dist.broadcast(gap, last)
        assert same(gap.contiguous(), last), dtype
        t = mine()
        if rank == 0:
            dist.send(t, 1)
        if rank == 1:
            dist.recv(t, 0)
            assert same(t, 0), dtype
        fails(f"a sum of {dtype}", "a reduction of a tensor of ", lambda: dist.all_reduce(t))


def multiplies():
    for factor in (0.5, torch.tensor([0.5], dtype=torch.float64)):
        op = dist._make_nccl_premul_sum(factor)
        for dtype in (torch.float32, torch.bfloat16):
            whole, t = float(sum(range(size))) / 2, torch.full((2, 3), float(rank), dtype=dtype)
            dist.all_reduce(t, op=op)
            assert t.dtype == dtype and t.tolist() == [[whole] * 3] * 2, t
            columns = torch.full((2, 3), float(rank), dtype=dtype).t()
            dist.reduce(columns, last, op=op)
            assert columns.tolist() == [[whole if rank == last else float(rank)] * 2] * 3, columns
            parts, sums = torch.full((size, 2), float(rank), dtype=dtype), torch.empty(2, dtype=dtype)
            dist.reduce_scatter_tensor(sums, parts, op=op)
            assert sums.tolist() == [whole] * 2 and parts.eq(rank).all(), (sums, parts)
    fails("a factor of integers", "PREMUL_SUM of a tensor of Int", lambda: dist.all_reduce(torch.ones(2, dtype=torch.int32), op=op))


def records():
    """The flight recorder has what ended, and how long it took, and what has not."""
    entries = lambda: json.loads(_dump_fr_trace_json(backend="gompi"))["entries"]
    group = dist.new_group()
    _reset_fr_trace(backend="gompi")
    dist.all_reduce(torch.ones(2, 3), group=group)
    works = [dist.isend(torch.ones(4), 1)] if rank == 0 else [dist.irecv(torch.ones(4), 0)] if rank == 1 else []
    for work in works:
        work.wait()
    for e in entries():
        assert e["state"] == "completed" and e["retired"], e
        assert e["is_p2p"] or e["duration_ms"] > 0, e
    want = ["gompi:all_reduce"] + ["gompi:send 0->1" if rank == 0 else "gompi:recv 1<-0"] * len(works)
    assert [e["profiling_name"] for e in entries()] == want, entries()
    if rank == 0:
        fails("all_reduce", "Timed out waiting", lambda: group.allreduce([torch.ones(5)], timeout=timedelta(seconds=1)).wait())
        assert (entries()[-1]["state"], entries()[-1]["input_sizes"]) == ("scheduled", [[5]]), entries()
    dist.barrier()


def gathers():
    all_of_them = torch.empty(2 * size) if rank == last else None
    dist.gather_single(torch.full((2,), float(rank)), all_of_them, dst=last)
    if rank == last:
        assert all_of_them.tolist() == [float(r) for r in range(size) for _ in range(2)], all_of_them


monitored()
profiles()
moves()
lateness()
if has:
    timeouts()
    records()
    multiplies()
    splits()
    aborts()
    gathers()
dist.destroy_process_group()
print(f"rank {rank} has what torch asks for")
