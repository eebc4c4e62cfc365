"""The store of the job does what torch's TCPStore does: each rank calls both alike, and compares."""

import re
import socket
import threading
from datetime import timedelta

import torch.distributed as dist

import gompi_torch

is_v1 = not hasattr(dist.Store, "append")


def calls(s):
    """What a rank asks a store, as pairs of words and a function."""
    never = timedelta(milliseconds=30)
    yield "set", lambda: s.set("a", "1")
    yield "get", lambda: s.get("a")
    yield "get of no key", lambda: s.get("no")
    yield "wait", lambda: s.wait(["a"])
    yield "wait for nothing", lambda: s.wait([])
    yield "wait for no key", lambda: s.wait(["no", "a", "nor"], never)
    yield "add", lambda: [s.add("n", 3), s.add("n", -5), s.get("n")]
    yield "add to text", lambda: [s.set("n", "7"), s.add("n", 1)]
    yield "compare_set of no key", lambda: [s.compare_set("k", "", "v"), s.compare_set("l", "w", "v")]
    yield "compare_set", lambda: [s.compare_set("k", "w", "x"), s.compare_set("k", "", "x"), s.compare_set("k", "v", "x")]
    yield "delete_key", lambda: [s.delete_key("k"), s.delete_key("k")]
    yield "zeros", lambda: [s.set("\0ü", "é\0"), s.get("\0ü"), s.set("", "x"), s.get("")]
    if is_v1:
        return
    yield "nothing", lambda: [s.set("e", ""), s.get("e"), s.compare_set("e", "", "f"), s.get("e")]
    yield "check", lambda: [s.check(["a"]), s.check(["a", "no"]), s.check([])]
    yield "has_extended_api", lambda: s.has_extended_api()
    yield "append", lambda: [s.append("a", "2"), s.append("b", "2"), s.get("a"), s.get("b")]
    yield "multi_set", lambda: s.multi_set(["c", "d"], ["x", "y"])
    yield "multi_set of less", lambda: s.multi_set(["c", "d"], ["x"])
    yield "multi_get", lambda: [s.multi_get(["d", "c", "a", "c"]), s.multi_get([])]
    yield "multi_get of no key", lambda: s.multi_get(["c", "no"])
    if hasattr(s, "clone"):
        yield "clone", lambda: [s.clone().get("a"), s.clone().timeout == s.timeout]
    if hasattr(s, "queue_push"):
        yield "queue_push", lambda: [s.queue_push("q", "1"), s.queue_push("q", "2"), s.queue_len("q"), s.queue_len("r")]
        yield "keys and queues", lambda: [s.check(["q"]), s.wait(["q"]), s.get("q"), s.multi_get(["q", "a"]), s.delete_key("q")]
        yield "queue_pop", lambda: [s.queue_pop("q"), s.queue_len("q"), s.set("q", "x"), s.get("q"), s.queue_pop("q", False)]
        yield "queue_pop of none", lambda: [s.delete_key("q"), s.check(["q"]), s.queue_pop("q")]
        yield "queue_pop of none, at once", lambda: s.queue_pop("q", False)
    if hasattr(s, "list_keys"):
        yield "list_keys", lambda: sorted(s.list_keys())
    if hasattr(s, "barrier"):
        yield "barrier", lambda: [s.barrier("B", 1), s.barrier("C", 2, never)]


def outcome(call):
    """What a call returns, or the type and the words of its error."""
    try:
        return call()
    except Exception as e:
        said = str(e).split("\n")[0].replace("gompi: store: ", "")
        said = re.sub(r"keys?: .*", lambda m: re.sub(r"(?<=[ ])/?(\d)/", r"\1/", m[0]).replace("/last_member", ""), said)
        return type(e), said.replace("barrier timeout", "wait timeout").replace("key:", "keys:")


def torchs(rank):
    """torch's store, of which rank 0 tells the port by ours."""
    ours = gompi_torch._C.store(timedelta(minutes=1))
    if rank == 0:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            ours.set("port", str(s.getsockname()[1]))
    return dist.TCPStore("127.0.0.1", int(ours.get("port")), None, rank == 0, timedelta(seconds=30), wait_for_workers=False)


def compare(rank, ours, other):
    """Has each store asked for the same, with keys of this rank, and stops at what differs."""
    stores = [dist.PrefixStore(str(rank), s) for s in (ours, other)]
    for s in stores:
        s.set_timeout(timedelta(milliseconds=100))
    for (what, mine), (_, its) in zip(*map(calls, stores)):
        got, want = outcome(mine), outcome(its)
        if is_v1 and type(want) is tuple:
            assert type(got) is tuple and "wait timeout after " in got[1], (what, got, want)
        else:
            assert got == want or as_good(got, want), (what, got, want)


def as_good(got, want):
    """Whether an error has the words of another, and is of its type or, as in a later torch, one derived from it."""
    return type(got) is type(want) is tuple and got[1] == want[1] and issubclass(got[0], want[0])


def queues(rank, size, s):
    """Every rank takes from a queue what all put there: each thing once, whoever waits."""
    per = 50
    got = []
    taker = threading.Thread(target=lambda: got.extend(s.queue_pop("things") for _ in range(per)))
    taker.start()
    for n in range(per):
        s.queue_push("things", f"{rank} {n}")
    taker.join()
    s.set(f"took {rank}", ",".join(t.decode() for t in got))
    took = ",".join(s.get(f"took {r}").decode() for r in range(size)).split(",")
    assert sorted(took) == sorted(f"{r} {n}" for r in range(size) for n in range(per)), took
    assert s.queue_len("things") == 0


dist.init_process_group("gompi")
rank, size = dist.get_rank(), dist.get_world_size()
store = dist.distributed_c10d._get_default_store()
ours, other = gompi_torch._C.store(timedelta(minutes=1)), torchs(rank)
compare(rank, ours, other)
dist.barrier()
assert is_v1 or ours.num_keys() == other.num_keys(), (ours.num_keys(), other.num_keys())
dist.barrier()  # torch's store ends with rank 0's
try:
    store.set("word", "x")
    store.add("word", 1)  # torch's store would be lost to all
    raise AssertionError("x and 1 were added")
except RuntimeError as e:
    assert 'which is "x": want a number' in str(e), e
if hasattr(store, "queue_push"):
    queues(rank, size, store)
dist.barrier()
dist.destroy_process_group()
print(f"rank {rank} is told")
