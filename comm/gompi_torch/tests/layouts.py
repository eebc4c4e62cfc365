"""Tensors with other strides on other ranks: every call moves their numbers in the order of the shape,
writes nothing beside them, and is refused only where elements that share memory would be written."""

import itertools
import warnings

import torch
import torch.distributed as dist

import gompi_torch

for kind in UserWarning, FutureWarning:  # names that newer torch calls otherwise
    warnings.simplefilter("ignore", kind)

dist.init_process_group("gompi")
rank, size = dist.get_rank(), dist.get_world_size()
root = size - 1
ROWS, COLUMNS = 4, 6
GAP = -7  # what lies beside the numbers

# How a tensor may lie: in order, the other way round, in a matrix with gaps between rows, and between all
# numbers, from an offset on.
LAYOUTS = {
    "contiguous": lambda: torch.zeros(ROWS, COLUMNS, dtype=dtype),
    "transposed": lambda: torch.zeros(COLUMNS, ROWS, dtype=dtype).t(),
    "rows": lambda: torch.full((ROWS, COLUMNS + 3), GAP, dtype=dtype)[:, 2 : COLUMNS + 2],
    "holes": lambda: torch.full((3 * COLUMNS, 2 * ROWS), GAP, dtype=dtype)[1::3, ::2].t(),
}
dtype = torch.float64


def numbers(of, block=0):
    """Those that a rank has for a block."""
    return torch.arange(ROWS * COLUMNS, dtype=dtype).reshape(ROWS, COLUMNS) + 1000 * of + 100 * block


def lies(turn, values, k=0):
    """A tensor of these numbers. Ranks have different layouts at the same time, and all of them in turn."""
    names = list(LAYOUTS)
    t = LAYOUTS[names[(rank + turn + k) % len(names)]]()
    t.copy_(values)
    return t


def beside(t):
    """The memory of t that is not t's."""
    whole = torch.tensor(t.storage().tolist(), dtype=dtype)
    whole.as_strided(t.size(), t.stride(), t.storage_offset()).fill_(GAP)
    return whole


def same(what, got, want):
    for i, (g, w) in enumerate(zip(got, want)):
        assert torch.equal(g, w), f"rank {rank}: {what}, tensor {i}, strides {g.stride()}: got\n{g}\nwant\n{w}"
        assert (beside(g) == GAP).all(), f"rank {rank}: {what}, tensor {i}, strides {g.stride()}: it wrote beside it"


def room(turn, n=size):
    return [lies(turn, torch.zeros(ROWS, COLUMNS, dtype=dtype), k) for k in range(n)]


def sums(block=0):
    return sum(numbers(r, block) for r in range(size))


def collectives(turn):
    everyone = [numbers(r) for r in range(size)]
    mine = lies(turn, numbers(rank))
    t = lies(turn, numbers(rank))
    dist.all_reduce(t)
    same("all_reduce", [t], [sums()])
    t = lies(turn, numbers(rank))
    dist.reduce(t, root)
    if rank == root:
        same("reduce", [t], [sums()])
    t = lies(turn, numbers(rank))
    dist.broadcast(t, root)
    same("broadcast", [t], [numbers(root)])
    out = room(turn)
    dist.all_gather(out, mine)
    same("all_gather", out, everyone)
    out = room(turn) if rank == root else None
    dist.gather(mine, out, root)
    same("gather", out or [], everyone)
    blocks = [lies(turn, numbers(rank, b), b) for b in range(size)]
    out = room(turn, 1)
    dist.scatter(out[0], blocks if rank == root else None, root)
    same("scatter", out, [numbers(root, rank)])
    dist.reduce_scatter(out[0], blocks)
    same("reduce_scatter", out, [sums(rank)])
    out = room(turn)
    dist.all_to_all(out, blocks)
    same("all_to_all", out, [numbers(r, rank) for r in range(size)])
    two = [lies(turn, numbers(rank, b), b) for b in range(2)]
    dist.all_reduce_coalesced(two)
    same("all_reduce_coalesced", two, [sums(b) for b in range(2)])
    outs = [room(turn + r, 2) for r in range(size)]
    dist.all_gather_coalesced(outs, [lies(turn, numbers(rank, b), b) for b in range(2)])
    for r in range(size):
        same("all_gather_coalesced", outs[r], [numbers(r, b) for b in range(2)])
    same("what was only read", [mine, *blocks], [numbers(rank), *(numbers(rank, b) for b in range(size))])


def whole_tensors(turn):
    """Those that have a block for each rank: the blocks lie anywhere in them."""
    whole = torch.full((size * ROWS, COLUMNS + turn), float(GAP), dtype=dtype)[:, :COLUMNS]
    if turn % 2:
        whole = torch.zeros(COLUMNS, size * ROWS, dtype=dtype).t()
    mine = lies(turn, numbers(rank))
    dist._all_gather_base(whole, mine)
    same("all_gather_base", [whole], [torch.cat([numbers(r) for r in range(size)])])
    out = room(turn, 1)
    whole.copy_(torch.cat([numbers(rank, b) for b in range(size)]))
    dist._reduce_scatter_base(out[0], whole)
    same("reduce_scatter_base", out, [sums(rank)])
    into = whole.clone(memory_format=torch.preserve_format).zero_()
    dist.all_to_all_single(into, whole)
    same("all_to_all_single", [into], [torch.cat([numbers(r, rank) for r in range(size)])])


def messages(turn):
    right, left = (rank + 1) % size, (rank - 1) % size
    for early in (False, True):
        got = room(turn, 1)[0]
        if not early:
            r = dist.irecv(got, left)
        s = dist.isend(lies(turn, numbers(rank)), right)
        if early:
            dist.barrier()
            r = dist.irecv(got, left)
        r.wait()
        s.wait()
        same("message", [got], [numbers(left)])
    # A shorter one leaves the rest as it is.
    got = room(turn, 1)[0]
    s = dist.isend(numbers(rank)[:1].clone(), right)
    dist.recv(got, left)
    s.wait()
    same("a short message", [got], [torch.cat([numbers(left)[:1], torch.zeros(ROWS - 1, COLUMNS, dtype=dtype)])])


def long_messages():
    """Those for which a rank that waits makes room of its own."""
    right, left = (rank + 1) % size, (rank - 1) % size
    n = 300
    dist.send((torch.arange(n * n) + rank).reshape(n, n).t(), right)
    got = torch.full((n, 2 * n), GAP)[:, ::2]
    dist.recv(got, left)
    assert torch.equal(got, (torch.arange(n * n) + left).reshape(n, n).t())


def reads_only():
    """An expanded tensor, one whose windows overlap, and a conjugate are read like others."""
    expanded = torch.full((1,), float(rank)).expand(5)
    windows = torch.arange(6.0).as_strided((4, 3), (1, 1)) + 0
    out = [torch.zeros(5) for _ in range(size)]
    dist.all_gather(out, expanded)
    same("all_gather of an expanded one", out, [torch.full((5,), float(r)) for r in range(size)])
    t = expanded if rank == root else torch.zeros(5)
    dist.broadcast(t, root)
    same("broadcast of an expanded one", [t.clone()], [torch.full((5,), float(root))])
    t = torch.arange(6.0).as_strided((4, 3), (1, 1)) if rank == root else torch.zeros(4, 3)
    dist.broadcast(t, root)
    same("broadcast of windows", [t.clone()], [windows])
    z = torch.tensor([1 + 2j, 3 - 4j])
    # torch 2.15 itself refuses to send numbers that are yet to be conjugated.
    s = dist.isend(z.conj() if torch.__version__ < "2" else z.conj().resolve_conj(), (rank + 1) % size)
    got = torch.zeros(2, dtype=z.dtype)
    dist.recv(got, (rank - 1) % size)
    s.wait()
    assert torch.equal(got, z.conj()), got


def refused():
    """One rank would write to elements that share memory: it alone fails, the others have their numbers,
    and the next calls are each other's."""
    shared = {"expanded": torch.ones(1).expand(4), "windows": torch.ones(5).as_strided((4, 2), (1, 1))}
    calls = {
        "all_reduce": lambda t: dist.all_reduce(t),
        "broadcast": lambda t: dist.broadcast(t, (failing + 1) % size),
        "all_gather": lambda t: dist.all_gather([t, *(torch.zeros(t.shape) for _ in range(size - 1))], torch.ones(t.shape)),
    }
    for (layout, out), (what, call), failing in itertools.product(shared.items(), calls.items(), range(size)):
        t = out if rank == failing else torch.ones(out.shape)
        try:
            call(t)
            error = ""
        except RuntimeError as e:
            error = str(e)
        if rank == failing and not (what == "broadcast" and size == 1):
            assert "elements that share memory" in error, f"{what} to {layout}: {error}"
        else:
            assert not error, f"{what}: {error}"
        u = torch.ones(1)
        dist.all_reduce(u)
        assert u.item() == size


def uneven():
    """Ranks' blocks of different lengths, in columns of matrices."""
    column = lambda n, value: torch.full((n, 2), float(value), dtype=dtype)[:, 1]
    out = [column(r + 1, GAP) for r in range(size)]
    dist.all_gather(out, column(rank + 1, rank))
    same("uneven all_gather", [t.clone() for t in out], [torch.full((r + 1,), float(r), dtype=dtype) for r in range(size)])
    mine = column(rank + 1, GAP)
    dist.reduce_scatter(mine, [column(r + 1, rank + r) for r in range(size)])
    same("uneven reduce_scatter", [mine.clone()], [torch.full((rank + 1,), float(sum(range(size)) + size * rank), dtype=dtype)])
    try:
        dist.all_gather(out, column(rank + 2, rank))
    except RuntimeError as e:
        assert "this as long as the list says" in str(e), e
    else:
        raise AssertionError("a block of another length than the list says")


def parameters():
    """What requires grad is written as it is, and nothing is noted for backward."""
    p = torch.nn.Parameter(numbers(rank).t().contiguous().t())
    dist.broadcast(p, root)
    same("a parameter", [p.detach()], [numbers(root)])
    q = (p * 2).t().contiguous().t()
    dist.all_reduce(q)
    q.sum().backward()
    assert torch.equal(p.grad, torch.full((ROWS, COLUMNS), 2.0, dtype=dtype))


def gradients():
    """Of channels_last: averaged by hand where one rank has them so, and by DDP, which wants all to."""
    for by_ddp in (False, True):
        grads = []
        for last in (False, by_ddp or rank == root):
            torch.manual_seed(1)
            net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Conv2d(8, 4, 3)).double()
            form = torch.channels_last if last else torch.contiguous_format
            net.to(memory_format=form)
            run = torch.nn.parallel.DistributedDataParallel(net) if by_ddp else net
            x = torch.randn(2, 3, 8, 8, dtype=dtype, generator=torch.Generator().manual_seed(rank))
            run(x.to(memory_format=form)).square().sum().backward()
            for p in net.parameters():
                if not by_ddp:
                    dist.all_reduce(p.grad)
            grads.append([p.grad for p in net.parameters()])
        for a, b in zip(*grads):
            assert torch.allclose(a, b, rtol=1e-9), f"rank {rank}: gradients, by DDP: {by_ddp}"


for turn in range(len(LAYOUTS)):
    collectives(turn)
    whole_tensors(turn)
    messages(turn)
for part in (long_messages, reads_only, refused, uneven, parameters, gradients):
    part()
dist.barrier()
print(f"rank {rank} is told")
