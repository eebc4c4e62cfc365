# What gdb runs in a rank: it prints where the threads of the program are, innermost frame first,
# without those that gompi has started, and what is gompi's in the others.
#
# A thread in gompi stands on a stack of Go's, which gdb cannot unwind. The library for MPI has noted
# where each thread entered Go (gompi_entries in mpi/libmpi/face/face.c): there unwinding goes on.
import os
import struct

import gdb
from gdb.unwinder import Unwinder, register_unwinder

MOST_FRAMES, MOST_THREADS, ENTRIES = 30, 16, 256


def is_gompi(pc):
    library = gdb.solib_name(pc)
    return library is not None and os.path.basename(library) in ("libgompi-mpi.so", "libgompi.so")


def entries():
    try:
        at = int(gdb.parse_and_eval("(long)&gompi_entries"))
    except gdb.error:
        return {}
    data = gdb.selected_inferior().read_memory(at, 16 * ENTRIES).tobytes()
    return {thread: frame for thread, frame in struct.iter_unpack("qQ", data) if thread and frame}


class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class OverGo(Unwinder):
    def __init__(self, entries):
        super().__init__("gompi")
        self.enabled, self.entries = True, entries

    def __call__(self, frame):
        pc = frame.read_register("rip")
        at = self.entries.get(gdb.selected_thread().ptid[1])
        if at is None or not is_gompi(int(pc)):
            return None
        saved, back = struct.unpack("QQ", gdb.selected_inferior().read_memory(at, 16).tobytes())
        info = frame.create_unwind_info(FrameId(frame.read_register("rsp"), pc))
        for name, value in (("rbp", saved), ("rip", back), ("rsp", at + 16)):
            info.add_saved_register(name, gdb.Value(value).cast(gdb.lookup_type("unsigned long")))
        return info


def describe(frame):
    name, line = frame.name() or "??", frame.find_sal()
    if line.symtab:
        return "%s() at %s:%d" % (name, line.symtab.fullname(), line.line)
    library = gdb.solib_name(frame.pc())
    return "%s()%s" % (name, " in " + os.path.basename(library) if library else "")


def frames():
    """Returns the frames of the selected thread, of which those of gompi alone, or of none, are []."""
    lines, of_program, frame = [], False, gdb.newest_frame()
    while frame is not None and len(lines) < MOST_FRAMES:
        if not is_gompi(frame.pc()):
            lines.append(describe(frame))
            of_program = of_program or gdb.solib_name(frame.pc()) is None and frame.name() is not None
        try:
            frame = frame.older()
        except gdb.error:
            break
    return lines if of_program else []


if gdb.selected_frame().architecture().name().startswith("i386:x86-64"):
    register_unwinder(None, OverGo(entries()), replace=True)
shown = 0
for thread in sorted(gdb.selected_inferior().threads(), key=lambda t: t.num):
    thread.switch()
    lines = frames()
    if lines and shown < MOST_THREADS:
        shown += 1
        print("=thread %d:" % thread.ptid[1])
        for line in lines:
            print("=  " + line)
