"""A rank that waits in Python, until KeyboardInterrupt. A time limit lets Python look for it."""
import ctypes
import os
import sys

lib = ctypes.CDLL(sys.argv[1])
world, timeout, int32 = ctypes.c_int64(1), 6, 3
assert lib.gompi_init(ctypes.c_int64(0)) == 0
assert lib.gompi_set_timeout(world, ctypes.c_int64(20)) == 0
x = ctypes.c_int32()
try:
    print("pid", os.getpid(), flush=True)
    while lib.gompi_recv(world, ctypes.byref(x), ctypes.c_size_t(1), int32, 0, 1, None) == timeout:
        pass
except KeyboardInterrupt:
    assert lib.gompi_finalize() == 0
    print("interrupted", flush=True)
