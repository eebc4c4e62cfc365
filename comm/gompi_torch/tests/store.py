"""The store of the job, from all ranks and several threads."""

import threading
import time
from datetime import timedelta

import torch.distributed as dist

import gompi_torch

for again in range(2):
    dist.init_process_group("gompi")
    rank, size = dist.get_rank(), dist.get_world_size()
    store = dist.distributed_c10d._get_default_store()

    store.set(f"from {rank}", f"value {rank}")
    for r in range(size):
        assert store.get(f"from {r}") == f"value {r}".encode()  # waits until it is there
    big = bytes(range(256)) * 4096
    if rank == size - 1:
        store.set("big", big.decode("latin-1"))
    assert store.get("big").decode() == big.decode("latin-1")

    # Every thread counts, and waits for the last.
    failures = []

    def count(n):
        try:
            for _ in range(20):
                store.add("count", 1)
            store.wait(["counted"], timedelta(seconds=30))
        except Exception as e:
            failures.append(e)

    threads = [threading.Thread(target=count, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    while store.add("count", 0) < 80 * size:
        time.sleep(0.001)
    if rank == 0:
        store.set("counted", "yes")
    for t in threads:
        t.join()
    assert not failures, failures
    assert store.get("count") == str(80 * size).encode()

    # One wins.
    won = store.compare_set("winner", "", str(rank))
    assert store.get("winner") == won
    assert store.compare_set("winner", "nobody", "x") == won
    dist.barrier()
    if rank == 0:
        assert store.delete_key("winner") and not store.delete_key("winner")
        assert store.num_keys() >= size + 3, store.num_keys()
    dist.barrier()
    try:
        store.wait(["winner"], timedelta(milliseconds=50))
        raise AssertionError("a key that was deleted is there")
    except RuntimeError as e:
        assert "wait timeout after 50ms, keys: " in str(e) and "winner" in str(e), e
    if hasattr(store, "clone"):  # torch >= 2.8
        # It lives on without the store that it is a clone of, has its keys, and a timeout of its own.
        store = dist.PrefixStore("clones", gompi_torch._C.store(timedelta(minutes=1)))
        clone = store.clone()
        clone.set_timeout(timedelta(milliseconds=50))
        assert store.timeout != clone.timeout, clone.timeout
        store.set(f"of {rank}", "value")
        del store
        for r in range(size):
            clone.wait([f"of {r}"], timedelta(seconds=30))
        dist.barrier()
    dist.destroy_process_group()
print(f"rank {rank} is told")
