"""Debian's mpi4py: objects, arrays, user operators, attributes, error handlers."""
from array import array
from os import rmdir
from os.path import join
from tempfile import mkdtemp
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()


def check(ok, what):
    if not ok:
        print("mpi4py: wrong:", what, flush=True)
        world.Abort(3)


check(world.bcast({"a": [1, 2, 3]} if rank == 0 else None) == {"a": [1, 2, 3]}, "bcast")
check(world.allgather(rank * "x") == [r * "x" for r in range(size)], "allgather")
check(world.sendrecv(rank, (rank + 1) % size, source=(rank - 1) % size) == (rank - 1) % size, "sendrecv")
check(world.allreduce((rank, "abc"[rank % 3]), MPI.MAX)[0] == size - 1, "allreduce of objects")
requests = [world.isend("to %d" % r, r, 5) for r in range(size)]
check([world.recv(source=r, tag=5) for r in range(size)] == ["to %d" % rank] * size, "isend")
MPI.Request.waitall(requests)

sums, numbers = array("d", [0] * 1000), array("d", range(1000))
world.Allreduce(numbers, sums)
check(sums == array("d", [size * x for x in range(1000)]), "Allreduce")
operator = MPI.Op.Create(lambda a, b, t: b.__setitem__(slice(None), bytes(max(x, y) for x, y in zip(a, b))), True)
result = bytearray(4)
world.Allreduce([bytearray([rank, 1, 2, 3]), MPI.BYTE], [result, MPI.BYTE], operator)
check(result[0] == size - 1, "user operator")
operator.Free()

status = MPI.Status()
if rank == 0:
    for _ in range(size - 1):
        world.Probe(status=status)
        received = array("i", [0] * status.Get_count(MPI.INT))
        world.Recv(received, status.source, status.tag)
        check(list(received) == [status.source] * status.source, "probe")
else:
    world.Send(array("i", [rank] * rank), 0, rank)

copies = []
key = MPI.Comm.Create_keyval(lambda c, k, v: copies.append(v) or v + 1)
world.Set_attr(key, 41)
dup = world.Dup()
check(dup.Get_attr(key) == 42 and copies == [41], "attribute")
check(world.Get_attr(MPI.TAG_UB) >= 32767, "TAG_UB")
dup.Free()
world.Delete_attr(key)
half = world.Split(rank % 2, rank)
check(half.Get_rank() == rank // 2, "Split")
half.Free()
try:
    world.Send(numbers, size)
    check(False, "no exception")
except MPI.Exception as e:
    check(e.Get_error_class() == MPI.ERR_RANK, "class of the exception")
ring = world.Create_cart([size], [True])
check(ring.Shift(0, 1) == ((rank - 1) % size, (rank + 1) % size), "Shift")
ring.Free()
vector = MPI.INT.Create_vector(3, 1, 2).Commit()
columns = array("i", range(6)) if rank == 0 else array("i", [-1] * 6)
world.Bcast([columns, 1, vector])
check(rank == 0 or list(columns) == [0, -1, 2, -1, 4, -1], "vector")
vector.Free()

folder = world.bcast(mkdtemp() if rank == 0 else None)
file = MPI.File.Open(world, join(folder, "data"), MPI.MODE_CREATE | MPI.MODE_RDWR | MPI.MODE_DELETE_ON_CLOSE)
turns = MPI.INT.Create_resized(0, 4 * size).Commit()
file.Set_view(4 * rank, MPI.INT, turns)
file.Write_all(array("i", range(rank, 5 * size, size)))
file.Sync()
world.Barrier()
file.Set_view(0, MPI.INT)
numbers = array("i", [0] * (5 * size))
file.Read_at_all(0, numbers, status)
check(list(numbers) == list(range(5 * size)) and status.Get_count(MPI.INT) == 5 * size, "what is in a file")
file.Seek_shared(0)
file.Write_ordered(array("i", [rank] * 2))
world.Barrier()
file.Iread_at(0, numbers).Wait(status)
check(list(numbers)[:2 * size] == [r for r in range(size) for _ in range(2)], "what ranks have written in order")
file.Close()
turns.Free()
try:
    MPI.File.Open(world, join(folder, "missing"))
    check(False, "no exception")
except MPI.Exception as e:
    check(e.Get_error_class() == MPI.ERR_NO_SUCH_FILE, "class of the exception of a file")
world.Barrier()
if rank == 0:
    rmdir(folder)
world.Barrier()
if rank == 0:
    print("mpi4py: no errors", flush=True)
