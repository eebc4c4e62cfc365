//go:build linux && cgo

// Command libmpi is libgompi-mpi.so: package mpi behind the functions of C that core.h describes.
// The faces, libmpi.so.40 and libmpi.so.12, open it in MPI_Init or MPI_Session_init, so that a
// process has Go from then on.
package main

/*
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "core.h"

static void call_op(const struct gompi_face *f, gompi_word fn, gompi_word in, gompi_word inout,
	int32_t n, int32_t op, int32_t type)
{ f->call_op(fn, in, inout, n, op, type); }
static int32_t copy_attr(const struct gompi_face *f, gompi_word fn, int32_t kind, int32_t id,
	int32_t keyval, gompi_word extra, gompi_word value, gompi_word *copy, int32_t *flag)
{ return f->copy_attr(fn, kind, id, keyval, extra, value, copy, flag); }
static int32_t delete_attr(const struct gompi_face *f, gompi_word fn, int32_t kind, int32_t id,
	int32_t keyval, gompi_word value, gompi_word extra)
{ return f->delete_attr(fn, kind, id, keyval, value, extra); }
static void call_errhandler(const struct gompi_face *f, gompi_word fn, int32_t errhandler,
	int32_t kind, int32_t object, int32_t code)
{ f->call_errhandler(fn, errhandler, kind, object, code); }
static int32_t query(const struct gompi_face *f, gompi_word fn, gompi_word extra,
	struct gompi_status *status)
{ return f->query(fn, extra, status); }
static int32_t release(const struct gompi_face *f, gompi_word fn, gompi_word extra)
{ return f->release(fn, extra); }
static int32_t cancel(const struct gompi_face *f, gompi_word fn, gompi_word extra, int32_t complete)
{ return f->cancel(fn, extra, complete); }
static void count(const struct gompi_face *f, int64_t bytes, int64_t peer, int64_t tag)
{ f->count(bytes, peer, tag); }

// malloc, since Go ends the process when C.malloc finds no memory.
static void *allocate(size_t n) { return malloc(n); }
int gompi_combine(int32_t op, int32_t datatype, void *in, void *inout, int32_t n);
*/
import "C"

import (
	"fmt"
	"os"
	"unsafe"

	"gompi/internal/boot"
	"gompi/internal/guest"
	"gompi/mpi/internal"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/p2p"
)

func main() {}

func init() { boot.NotInGo = guest.PythonStacks }

//export gompi_mpi_use
func gompi_mpi_use(f *C.struct_gompi_face) { mpi.Use(faceOf(f)) }

//export gompi_mpi_init
func gompi_mpi_init() C.int32_t {
	if err := mpi.Init(); err != nil {
		fmt.Fprintln(os.Stderr, "gompi: MPI_Init:", err)
		return 1
	}
	return 0
}

//export gompi_mpi_finalize
func gompi_mpi_finalize() C.int32_t { return C.int32_t(mpi.Finalize()) }

//export gompi_mpi_running
func gompi_mpi_running() C.int32_t { return intOf(mpi.Running()) }

//export gompi_mpi_exit
func gompi_mpi_exit() { mpi.Exit() }

//export gompi_mpi_call
func gompi_mpi_call(function C.int32_t, arguments *C.gompi_word) C.int32_t {
	p2p.Enter()
	class := mpi.Call(int(function), (*mpi.Args)(unsafe.Pointer(arguments)))
	p2p.Leave()
	return C.int32_t(class)
}

//export gompi_mpi_length
func gompi_mpi_length(what, comm C.int32_t) C.int32_t {
	return C.int32_t(mpi.Length(int(what), abi.Handle(comm)))
}

//export gompi_mpi_null
func gompi_mpi_null(function, object C.int32_t, name *C.char) C.int32_t {
	return C.int32_t(mpi.Null(int(function), abi.Handle(object), C.GoString(name)))
}

//export gompi_mpi_unsupported
func gompi_mpi_unsupported(comm C.int32_t, name *C.char) C.int32_t {
	return C.int32_t(mpi.Unsupported(abi.Handle(comm), C.GoString(name)))
}

//export gompi_mpi_set_language
func gompi_mpi_set_language(kind, object, language C.int32_t) {
	mpi.SetLanguage(int(kind), abi.Handle(object), int(language))
}

//export gompi_mpi_set_integer
func gompi_mpi_set_integer(kind, object, keyval C.int32_t, value C.gompi_word) C.int32_t {
	return C.int32_t(mpi.SetInteger(int(kind), abi.Handle(object), int(keyval), int64(value)))
}

//export gompi_mpi_integer
func gompi_mpi_integer(kind, object, keyval C.int32_t, value *C.gompi_word, flag *C.int32_t) C.int32_t {
	x, found, class := mpi.Integer(int(kind), abi.Handle(object), int(keyval))
	if *flag = 0; found {
		*value, *flag = C.gompi_word(x), 1
	}
	return C.int32_t(class)
}

// faceOf returns f for package mpi. Data that C stores lies in C's memory, since Go moves its
// stacks.
func faceOf(f *C.struct_gompi_face) abi.Face {
	word := func(a abi.Addr) C.gompi_word { return C.gompi_word(a) }
	return abi.Face{
		ProcNull: int(f.proc_null), AnySource: int(f.any_source), Undefined: int(f.undefined),
		BsendOverhead: int(f.bsend_overhead), BufferAutomatic: abi.Addr(f.buffer_automatic), LastCode: int(f.last_code),
		MaxObjectName: int(f.max_object_name), MaxErrorString: int(f.max_error_string),
		MaxProcessorName: int(f.max_processor_name), MaxInfoKey: int(f.max_info_key), MaxInfoValue: int(f.max_info_val),
		Unified: int(f.win_unified), FlavorCreate: int(f.win_flavor_create), DistributeBlock: int(f.distribute_block),
		DistributeCyclic: int(f.distribute_cyclic),
		DistributeNone:   int(f.distribute_none), DefaultArgument: int(f.distribute_default),
		CallOp: func(fn, in, inout abi.Addr, n int, op, datatype abi.Handle) {
			C.call_op(f, word(fn), word(in), word(inout), C.int32_t(n), C.int32_t(op), C.int32_t(datatype))
		},
		CopyAttr: func(fn abi.Addr, kind int, object abi.Handle, keyval int, extra, value abi.Addr) (abi.Addr, bool,
			abi.Class) {
			var copied C.gompi_word
			var flag C.int32_t
			class := C.copy_attr(f, word(fn), C.int32_t(kind), C.int32_t(object), C.int32_t(keyval), word(extra),
				word(value), &copied, &flag)
			return abi.Addr(copied), flag != 0, abi.Class(class)
		},
		DeleteAttr: func(fn abi.Addr, kind int, object abi.Handle, keyval int, value, extra abi.Addr) abi.Class {
			return abi.Class(C.delete_attr(f, word(fn), C.int32_t(kind), C.int32_t(object), C.int32_t(keyval),
				word(value), word(extra)))
		},
		CallErrhandler: func(fn abi.Addr, h abi.Handle, kind int, object abi.Handle, class abi.Class) {
			C.call_errhandler(f, word(fn), C.int32_t(h), C.int32_t(kind), C.int32_t(object), C.int32_t(class))
		},
		Query: func(fn, extra abi.Addr, s *abi.Status) abi.Class {
			st := C.struct_gompi_status{source: C.int32_t(s.Source), tag: C.int32_t(s.Tag), bytes: C.int64_t(s.Bytes)}
			class := C.query(f, word(fn), word(extra), &st)
			s.Source, s.Tag, s.Cancelled, s.Bytes = int32(st.source), int32(st.tag), int32(st.cancelled),
				int64(st.bytes)
			return abi.Class(class)
		},
		Release: func(fn, extra abi.Addr) abi.Class { return abi.Class(C.release(f, word(fn), word(extra))) },
		Cancel: func(fn, extra abi.Addr, complete bool) abi.Class {
			return abi.Class(C.cancel(f, word(fn), word(extra), intOf(complete)))
		},
		Count: func(bytes, peer, tag int) { C.count(f, C.int64_t(bytes), C.int64_t(peer), C.int64_t(tag)) },
		Alloc: func(n int) abi.Addr { return abi.Addr(uintptr(C.allocate(C.size_t(n)))) },
		Free:  func(a abi.Addr) { C.free(pointer(a)) },
		Combine: func(op, datatype abi.Handle, in, inout abi.Addr, n int) bool {
			return C.gompi_combine(C.int32_t(op), C.int32_t(datatype), pointer(in), pointer(inout), C.int32_t(n)) != 0
		},
		Alone: checkAlone,
		Flush: func() { C.fflush(nil) },
		Exit:  func(status int) { C._exit(C.int(status)) },
	}
}

func intOf(b bool) C.int32_t {
	if b {
		return 1
	}
	return 0
}

func pointer(a abi.Addr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&a)) }
