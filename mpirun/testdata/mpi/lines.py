"""Calls of mpi4py with known counts, at lines that comments mark. Rank 1 comes late."""
import atexit
import threading
import time
from array import array
from mpi4py import MPI

world = MPI.COMM_WORLD
numbers = array("d", [1])


def step():
    world.Allreduce(MPI.IN_PLACE, numbers)  # step


for _ in range(1000):
    step()
world.bcast({"an": "object"})  # object
operator = MPI.Op.Create(lambda a, b, t: None, True)
world.Allreduce(MPI.IN_PLACE, numbers, operator)  # operator
operator.Free()
apart = world.Dup()  # dup


def talk():
    for _ in range(5):
        apart.Barrier()  # thread


thread = threading.Thread(target=talk)
thread.start()
while thread.is_alive():  # and takes Python's lock all the time
    pass
apart.Free()  # free
for _ in range(10):
    end = time.monotonic() + .05 * world.rank
    while time.monotonic() < end:
        pass
    world.Allreduce(MPI.IN_PLACE, numbers)  # late
atexit.register(lambda: world.Barrier())  # exit
