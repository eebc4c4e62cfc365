"""Every collective with every type and operator: what gompi gives is what gloo gives, and what the
definition says where gloo has no such thing."""

import itertools
import warnings

import torch
import torch.distributed as dist

import gompi_torch

for kind in UserWarning, FutureWarning:  # names that newer torch calls otherwise
    warnings.simplefilter("ignore", kind)

OPS = {"sum": dist.ReduceOp.SUM, "product": dist.ReduceOp.PRODUCT, "min": dist.ReduceOp.MIN, "max": dist.ReduceOp.MAX}
BITS = {"band": dist.ReduceOp.BAND, "bor": dist.ReduceOp.BOR, "bxor": dist.ReduceOp.BXOR}
INTEGERS = [torch.int8, torch.uint8, torch.int32, torch.int64]
FLOATS = [torch.float16, torch.float32, torch.float64]
MORE = [torch.int16, torch.bfloat16, torch.complex64, torch.complex128, torch.bool]  # gloo reduces none of them

dist.init_process_group("gompi")
rank, size = dist.get_rank(), dist.get_world_size()
gloo = dist.new_group(backend="gloo")
root = size - 1
checks = 0


def values(dtype, shape, seed=0):
    g = torch.Generator().manual_seed(100 * seed + rank)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=g).bool()
    if dtype.is_complex:
        return torch.randn(shape, generator=g, dtype=dtype)
    if dtype.is_floating_point:
        return torch.randn(shape, generator=g).to(dtype)
    return torch.randint(1, 5, shape, generator=g).to(dtype)


def same(got, want, what):
    global checks
    checks += 1
    if want.is_sparse:
        got, want = got.to_dense(), want.to_dense()
    # Two operands have one sum; of more, the order of additions shows in the last bits.
    exact = size <= 2 or not (want.dtype.is_floating_point or want.dtype.is_complex)
    tolerance = 2e-2 if want.dtype == torch.float16 else 1e-5
    close = torch.equal(got, want) if exact else torch.allclose(got.double(), want.double(), tolerance, tolerance)
    assert close, f"rank {rank}: {what}: got {got.flatten()[:8]}, want {want.flatten()[:8]}"


def both(what, call, outputs, *shared):
    """call(group, outputs, ...) on each group; outputs is a function that makes those tensors anew."""
    mine, theirs = outputs(), outputs()
    call(dist.group.WORLD, mine, *shared)
    call(gloo, theirs, *shared)
    for i, (a, b) in enumerate(zip(mine, theirs)):
        same(a, b, f"{what}, tensor {i}")


def reductions():
    for dtype, shape in itertools.product(INTEGERS + FLOATS, [(1,), (7, 3), (5000,)]):
        for name, op in {**OPS, **(BITS if dtype in INTEGERS else {})}.items():
            what = f"{name} of {dtype} {shape}"
            both("all_reduce, " + what, lambda g, t: dist.all_reduce(t[0], op, group=g), lambda: [values(dtype, shape)])
            if rank == root:
                both("reduce, " + what, lambda g, t: dist.reduce(t[0], root, op, group=g), lambda: [values(dtype, shape)])
            else:
                for g in (dist.group.WORLD, gloo):
                    dist.reduce(values(dtype, shape), root, op, group=g)


def reductions_that_gloo_lacks():
    for dtype in MORE + [torch.float32]:
        all_of = [torch.empty((33,), dtype=dtype) for _ in range(size)]
        dist.all_gather(all_of, values(dtype, (33,)))
        for name, op in OPS.items():
            if dtype.is_complex and name != "sum":  # torch itself refuses those
                continue
            want = all_of[0].clone()
            for t in all_of[1:]:
                want = {
                    "sum": (lambda a, b: a | b) if dtype == torch.bool else torch.add,
                    "product": (lambda a, b: a & b) if dtype == torch.bool else torch.mul,
                    "min": torch.minimum if dtype != torch.bool else lambda a, b: a & b,
                    "max": torch.maximum if dtype != torch.bool else lambda a, b: a | b,
                }[name](want, t)
            got = values(dtype, (33,))
            dist.all_reduce(got, op)
            if dtype == torch.bfloat16 and size > 2:
                assert torch.allclose(got.float(), want.float(), rtol=0.05, atol=0.05)
            elif size > 2 and (dtype.is_complex or dtype.is_floating_point):
                assert torch.allclose(got, want, rtol=1e-4, atol=1e-4), f"{name} of {dtype}: {got} {want}"
            else:
                same(got, want, f"all_reduce, {name} of {dtype}")
        if dtype.is_floating_point:
            got = values(dtype, (33,))
            dist.all_reduce(got, dist.ReduceOp.AVG)
            assert torch.allclose(got.float(), torch.stack([t.float() for t in all_of]).mean(0), rtol=0.05, atol=0.05), "average"
        block = torch.empty((3,), dtype=dtype)
        dist.reduce_scatter(block, [values(dtype, (3,), seed=i) for i in range(size)])
        whole = torch.empty((3,), dtype=dtype)
        dist._reduce_scatter_base(whole, torch.cat([values(dtype, (3,), seed=i) for i in range(size)]))
        same(whole, block, f"reduce_scatter of {dtype}")


def copies():
    for dtype, shape in itertools.product(INTEGERS + FLOATS, [(1,), (4, 3), (3000,)]):
        v = values(dtype, shape)
        what = f"of {dtype} {shape}"
        room = lambda n=size: [torch.zeros(shape, dtype=dtype) for _ in range(n)]
        both("broadcast " + what, lambda g, t: dist.broadcast(t[0], root, group=g), lambda: [v.clone()])
        both("all_gather " + what, lambda g, t: dist.all_gather(t, v, group=g), room)
        whole = torch.zeros((size, *shape), dtype=dtype)
        dist.all_gather(list(whole.unbind()), v)  # into views of one tensor
        base = torch.zeros((size, *shape), dtype=dtype)
        dist._all_gather_base(base, v)
        same(base, whole, "all_gather_base " + what)
        both("gather " + what, lambda g, t: dist.gather(v, t if rank == root else None, root, group=g), room if rank == root else list)
        parts = [values(dtype, shape, seed=i) for i in range(size)]
        both("scatter " + what, lambda g, t: dist.scatter(t[0], parts if rank == root else None, root, group=g), lambda: room(1))
        both(
            "all_to_all " + what,
            lambda g, t: dist.all_to_all_single(t[0], torch.stack(parts), group=g),
            lambda: [torch.zeros((size, *shape), dtype=dtype)],
        )
        lists = room()
        dist.all_to_all(lists, parts)
        single = torch.zeros((size, *shape), dtype=dtype)
        dist.all_to_all_single(single, torch.stack(parts))
        same(torch.stack(lists), single, "all_to_all of lists " + what)


def uneven_alltoall():
    sends = [(rank + i) % 3 for i in range(size)]
    recvs = [(i + rank) % 3 for i in range(size)]
    source = values(torch.float32, (sum(sends), 4))
    both(
        "all_to_all with splits",
        lambda g, t: dist.all_to_all_single(t[0], source, recvs, sends, group=g),
        lambda: [torch.zeros((sum(recvs), 4))],
    )


def sparse():
    for nnz in (0, 1, 5 + rank):
        g = torch.Generator().manual_seed(nnz + rank)
        i = torch.randint(0, 10, (1, nnz), generator=g)
        v = torch.randn((nnz, 3), generator=g)
        both("sparse all_reduce", lambda grp, t: dist.all_reduce(t[0], group=grp), lambda: [torch.sparse_coo_tensor(i, v, (10, 3))])


def coalesced():
    both(
        "all_reduce_coalesced",
        lambda g, t: dist.all_reduce_coalesced(t, group=g),
        lambda: [values(torch.float32, (5,)), values(torch.float32, (2, 2), seed=1)],
    )
    outs = [[torch.zeros(3), torch.zeros(2, 2)] for _ in range(size)]
    ins = [values(torch.float32, (3,)), values(torch.float32, (2, 2), seed=1)]
    dist.all_gather_coalesced(outs, ins)
    for i, t in enumerate(ins):
        want = [torch.zeros_like(t) for _ in range(size)]
        dist.all_gather(want, t)
        same(torch.stack([o[i] for o in outs]), torch.stack(want), "all_gather_coalesced")


def strides():
    """Dense tensors in another order than that of their shape."""
    both("all_reduce, transposed", lambda g, t: dist.all_reduce(t[0], group=g), lambda: [values(torch.float32, (4, 6)).t()])
    both(
        "all_reduce, channels last",
        lambda g, t: dist.all_reduce(t[0], group=g),
        lambda: [values(torch.float32, (2, 3, 4, 5)).to(memory_format=torch.channels_last)],
    )


def messages():
    right, left = (rank + 1) % size, (rank - 1) % size
    for n in (0, 1, 1000, 1 << 20):
        out, into = torch.full((n,), float(rank)), torch.zeros(n)
        r = dist.isend(out, right, tag=3)
        dist.recv(into, left, tag=3)
        r.wait()
        assert torch.equal(into, torch.full((n,), float(left))), "ring"
        ops = [dist.P2POp(dist.isend, out, right), dist.P2POp(dist.irecv, into.zero_(), left)]
        for w in dist.batch_isend_irecv(ops):
            w.wait()
        assert torch.equal(into, torch.full((n,), float(left))), "batch"
    if rank == 0:
        seen = set()
        for _ in range(1, size):
            t = torch.zeros(2, dtype=torch.int64)
            src = dist.recv(t)
            assert t.tolist() == [src, src * src]
            seen.add(src)
        assert seen == set(range(1, size))
    else:
        dist.send(torch.tensor([rank, rank * rank]), 0)
    dist.barrier()


def objects():
    got = [None] * size
    dist.all_gather_object(got, {"rank": rank, "list": list(range(rank))})
    assert got == [{"rank": r, "list": list(range(r))} for r in range(size)]
    box = [("text", 7)] if rank == root else [None]
    dist.broadcast_object_list(box, root)
    assert box == [("text", 7)]
    part = [None]
    dist.scatter_object_list(part, [f"for {r}" for r in range(size)] if rank == 0 else None, 0)
    assert part == [f"for {rank}"]
    gathered = [None] * size if rank == 0 else None
    dist.gather_object(rank * 11, gathered, 0)
    assert rank != 0 or gathered == [11 * r for r in range(size)]


def asynchronous():
    tensors = [values(torch.float32, (100 + i,)) for i in range(50)]
    want = [t.clone() for t in tensors]
    works = [dist.all_reduce(t, async_op=True) for t in tensors]
    for t in want:
        dist.all_reduce(t, group=gloo)
    for w in reversed(works):
        w.wait()
    for t, u in zip(tensors, want):
        same(t, u, "async all_reduce")
    assert all(w.is_completed() for w in works)
    # A callback may wait for a collective that was called after its own.
    t, u = torch.ones(10), torch.ones(10)

    def then(f):
        w = dist.all_reduce(u, async_op=True)
        w.get_future().wait()
        return f.value()[0] + u

    total = dist.all_reduce(t, async_op=True).get_future().then(then).wait()
    assert torch.equal(total, torch.full((10,), 2.0 * size)), total
    later = dist.all_reduce(torch.ones(3), async_op=True)
    while not later.is_completed():
        pass
    assert torch.equal(later.result()[0], torch.full((3,), float(size)))


def groups():
    for members in ([root], list(range(0, size, 2)), list(range(size))):
        g = dist.new_group(members)
        if rank in members:
            t = torch.tensor([rank + 1])
            dist.all_reduce(t, group=g)
            assert t.item() == sum(r + 1 for r in members)
            dist.barrier(g)
            dist.destroy_process_group(g)
    dist.barrier()
    dist.monitored_barrier()


def coalescing():
    """What torch 2 has to call several collectives as one: by kinds, and all between two calls."""
    for device in (None, torch.device("cpu")):
        for wait_later in (False, True):
            sums, gathered = [torch.ones(3), torch.ones(2, 2)], [torch.zeros(2 * size) for _ in range(2)]
            parts = [torch.zeros(2), torch.zeros(3)]
            calls = (
                lambda: [dist.all_reduce(t) for t in sums],
                lambda: [dist.all_gather_into_tensor(t, torch.full((2,), float(rank))) for t in gathered],
                lambda: [dist.reduce_scatter_tensor(t, torch.ones(len(t) * size)) for t in parts],
            )
            for call in calls:
                with dist._coalescing_manager(device=device, async_ops=wait_later) as together:
                    call()
                if wait_later:
                    together.wait()
            for t in sums + parts:
                same(t, torch.full_like(t, float(size)), "coalesced sums")
            for t in gathered:
                same(t, torch.arange(float(size)).repeat_interleave(2), "coalesced all_gather")


def functional():
    """What torch 2's DTensor calls, and what it calls it for: a matrix that lies in parts on the ranks."""
    import torch.distributed._functional_collectives as calls
    from torch.distributed.device_mesh import init_device_mesh

    v, world = values(torch.float32, (2 * size,)), dist.group.WORLD
    both("functional all_reduce", lambda g, t: t[0].copy_(calls.all_reduce(v, "sum", g)), lambda: [torch.zeros(2 * size)])
    both("functional all_gather", lambda g, t: t[0].copy_(calls.all_gather_tensor(v, 0, g)), lambda: [torch.zeros(2 * size * size)])
    blocks = calls.all_to_all_single(v, None, None, world)
    want = torch.zeros(2 * size)
    dist.all_to_all_single(want, v)
    same(blocks + 0, want, "functional all_to_all")
    mesh = init_device_mesh("cpu", (1, size), mesh_dim_names=("one", "all"))
    try:
        from torch.distributed.tensor import Shard, distribute_tensor
    except ImportError:  # before torch 2.5
        from torch.distributed._tensor import Shard, distribute_tensor
    whole = torch.arange(12.0 * size).reshape(-1, 3)
    split = distribute_tensor(whole, mesh["all"], [Shard(0)])
    same(split.full_tensor(), whole, "a tensor in parts")
    same((split.t() @ split).full_tensor(), whole.t() @ whole, "the product of parts")


def newer_types():
    for dtype in (torch.uint16, torch.uint32, torch.uint64):
        t = torch.arange(5).add(rank).to(dtype)
        whole = torch.zeros(5 * size, dtype=dtype)
        dist.all_gather_into_tensor(whole, t)
        want = torch.cat([torch.arange(5) + r for r in range(size)])
        same(whole.long(), want, f"all_gather of {dtype}")
        dist.all_reduce(t)
        same(t.long(), want.reshape(size, 5).sum(0), f"all_reduce of {dtype}")


has = {
    coalescing: hasattr(dist, "_coalescing_manager"),
    functional: hasattr(dist, "init_device_mesh"),
    newer_types: hasattr(torch, "uint16"),
}
for part in (
    reductions,
    reductions_that_gloo_lacks,
    copies,
    uneven_alltoall,
    sparse,
    coalesced,
    strides,
    messages,
    objects,
    asynchronous,
    groups,
    *(part for part, torch_has_it in has.items() if torch_has_it),
):
    part()

dist.destroy_process_group()
dist.init_process_group("gompi")  # again
t = torch.ones(1)
dist.all_reduce(t)
assert t.item() == size
print(f"rank {rank} of {size}: {checks} results are right")
