"""What the tutorial of mpi4py's documentation shows, each of its programs with what it should give."""
import os
import tempfile
import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
right, left = (rank + 1) % size, (rank - 1) % size


def check(ok, what):
    if not ok:
        print("tutorial: wrong:", what, flush=True)
        comm.Abort(3)


def messages():
    data = {"a": 7, "b": 3.14}
    if rank == 0:
        comm.send(data, dest=size - 1, tag=11)
    if rank == size - 1:
        check(comm.recv(source=0, tag=11) == data, "objects, blocking")
    request = comm.isend(data, dest=right, tag=12)
    check(comm.irecv(source=left, tag=12).wait() == data, "objects, not blocking")
    request.wait()
    # Arrays, with their type said and found out.
    here = numpy.arange(1000, dtype="i")
    there = numpy.empty(1000, dtype="i")
    comm.Sendrecv([here, MPI.INT], dest=right, sendtag=77, recvbuf=[there, MPI.INT], source=left, recvtag=77)
    check((here == there).all(), "arrays of a type")
    there = numpy.empty(100, dtype=numpy.float64)
    request = comm.Isend(numpy.arange(100, dtype=numpy.float64), dest=right, tag=13)
    comm.Recv(there, source=left, tag=13)
    request.Wait()
    check((there == numpy.arange(100)).all(), "arrays whose type is found")


def collectives():
    data = {"key1": [7, 2.72, 2 + 3j], "key2": ("abc", "xyz")}
    check(comm.bcast(data if rank == 0 else None, root=0) == data, "bcast")
    check(comm.scatter([(i + 1) ** 2 for i in range(size)] if rank == 0 else None, root=0) == (rank + 1) ** 2, "scatter")
    every = comm.gather((rank + 1) ** 2, root=0)
    check(every == ([(i + 1) ** 2 for i in range(size)] if rank == 0 else None), "gather")
    x = numpy.arange(100, dtype="i") if rank == 0 else numpy.empty(100, dtype="i")
    comm.Bcast(x, root=0)
    check((x == numpy.arange(100)).all(), "Bcast")
    rows = None
    if rank == 0:
        rows = numpy.empty([size, 100], dtype="i")
        rows.T[:, :] = range(size)
    row = numpy.empty(100, dtype="i")
    comm.Scatter(rows, row, root=0)
    check((row == rank).all(), "Scatter")
    back = numpy.empty([size, 100], dtype="i") if rank == 0 else None
    comm.Gather(row, back, root=0)
    check(rank != 0 or all((back[i] == i).all() for i in range(size)), "Gather")
    # A product of a matrix, whose rows are distributed, and a vector.
    m = 5
    whole = numpy.arange(m * size * m * size, dtype="d").reshape(m * size, m * size)
    vector = numpy.arange(m * size, dtype="d")
    gathered = numpy.zeros(m * size, dtype="d")
    comm.Allgather([vector[rank * m:(rank + 1) * m].copy(), MPI.DOUBLE], [gathered, MPI.DOUBLE])
    check((whole[rank * m:(rank + 1) * m] @ gathered == (whole @ vector)[rank * m:(rank + 1) * m]).all(), "matrix and vector")
    # Pi, as the master computes it with its workers.
    n = numpy.array(100 if rank == 0 else 0, "i")
    comm.Bcast([n, MPI.INT], root=0)
    h = 1.0 / n
    part = numpy.array(h * sum(4.0 / (1.0 + (h * (i + 0.5)) ** 2) for i in range(rank, n, size)), "d")
    total = numpy.array(0.0, "d")
    comm.Reduce([part, MPI.DOUBLE], [total, MPI.DOUBLE], op=MPI.SUM, root=0)
    check(rank != 0 or abs(total - numpy.pi) < 1e-4, "pi")


def files():
    name = comm.bcast(os.path.join(tempfile.mkdtemp(), "datafile") if rank == 0 else None)
    file = MPI.File.Open(comm, name, MPI.MODE_WRONLY | MPI.MODE_CREATE)
    buffer = numpy.full(10, rank, dtype=int)
    file.Write_at_all(rank * buffer.nbytes, buffer)
    file.Close()
    if rank == 0:
        check((numpy.fromfile(name, dtype=int).reshape(size, 10).T == range(size)).all(), "a file with what each rank has")
    comm.Barrier()
    # In turns, by a vector type.
    file = MPI.File.Open(comm, name, MPI.MODE_RDWR)
    turns = MPI.INT.Create_vector(10, 1, size)
    turns.Commit()
    buffer = numpy.full(10, rank, dtype="i")
    file.Set_view(rank * buffer.itemsize, filetype=turns)
    file.Write_all(buffer)
    turns.Free()
    file.Close()
    if rank == 0:
        check((numpy.fromfile(name, dtype="i")[:10 * size].reshape(10, size) == range(size)).all(), "a file in turns")
        os.remove(name)
        os.rmdir(os.path.dirname(name))


def windows():
    unit = MPI.FLOAT.Get_size()
    win = MPI.Win.Allocate(unit * 10 if rank == 0 else 0, comm=comm)
    if rank == 0:
        memory = numpy.frombuffer(win, dtype="f")
        memory[:] = 42
    comm.Barrier()
    if rank == size - 1:
        got = numpy.empty(10, dtype="f")
        win.Lock(rank=0)
        win.Get(got, target_rank=0)
        win.Unlock(rank=0)
        check((got == 42).all(), "read out of a window")
    comm.Barrier()
    if rank == size - 1:
        win.Lock(rank=0)
        win.Put(numpy.arange(10, dtype="f"), target_rank=0)
        win.Unlock(rank=0)
    comm.Barrier()
    check(rank != 0 or (memory == numpy.arange(10)).all(), "written into a window")
    if rank == 0:
        del memory
    win.Free()
    # Memory of one's own, attached later.
    mine = numpy.full(8, -1, dtype="i")
    win = MPI.Win.Create_dynamic(comm=comm)
    win.Attach(mine)
    places = comm.allgather(MPI.Get_address(mine))
    win.Fence()
    win.Put([numpy.full(2, rank, dtype="i"), MPI.INT], right, target=(places[right] + 8, 2, MPI.INT))
    win.Fence()
    check(list(mine) == [-1, -1, left, left, -1, -1, -1, -1], "put to attached memory")
    win.Detach(mine)
    win.Free()


messages()
collectives()
files()
windows()
comm.Barrier()
if rank == 0:
    print("tutorial: no errors")
