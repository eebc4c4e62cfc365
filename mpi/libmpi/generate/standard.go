package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/typemap"
)

// preamble is the beginning of mpi.h: the types of MPI 5.0's binary interface. Handles are
// pointers to nothing, and predefined handles small numbers.
const preamble = `/* MPI 5.0, by its own binary interface: a program that was compiled with this file runs on every
 * libmpi_abi.so.1, gompi's or another. Written by gompi's mpi/libmpi/generate from its tables. */
#ifndef GOMPI_STANDARD_MPI_H
#define GOMPI_STANDARD_MPI_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef intptr_t MPI_Aint;
typedef int64_t MPI_Offset;
typedef int64_t MPI_Count;
typedef struct {
	int MPI_SOURCE, MPI_TAG, MPI_ERROR;
	int MPI_internal[5];
} MPI_Status;
`

// functionTypes are the types of the program's functions, constants of pointer types, and the
// tools' interface.
const functionTypes = `
/* Functions of the program */

typedef void MPI_User_function(void *in, void *inout, int *count, MPI_Datatype *datatype);
typedef void MPI_User_function_c(void *in, void *inout, MPI_Count *count, MPI_Datatype *datatype);
typedef int MPI_Grequest_query_function(void *extra_state, MPI_Status *status);
typedef int MPI_Grequest_free_function(void *extra_state);
typedef int MPI_Grequest_cancel_function(void *extra_state, int complete);
typedef int MPI_Comm_copy_attr_function(MPI_Comm, int keyval, void *extra_state, void *in, void *out, int *flag);
typedef int MPI_Comm_delete_attr_function(MPI_Comm, int keyval, void *value, void *extra_state);
typedef int MPI_Type_copy_attr_function(MPI_Datatype, int keyval, void *extra_state, void *in, void *out, int *flag);
typedef int MPI_Type_delete_attr_function(MPI_Datatype, int keyval, void *value, void *extra_state);
typedef int MPI_Win_copy_attr_function(MPI_Win, int keyval, void *extra_state, void *in, void *out, int *flag);
typedef int MPI_Win_delete_attr_function(MPI_Win, int keyval, void *value, void *extra_state);
typedef MPI_Comm_copy_attr_function MPI_Copy_function;
typedef MPI_Comm_delete_attr_function MPI_Delete_function;
typedef void MPI_Comm_errhandler_function(MPI_Comm *, int *code, ...);
typedef void MPI_Win_errhandler_function(MPI_Win *, int *code, ...);
typedef void MPI_File_errhandler_function(MPI_File *, int *code, ...);
typedef void MPI_Session_errhandler_function(MPI_Session *, int *code, ...);
typedef MPI_Comm_errhandler_function MPI_Comm_errhandler_fn;
typedef MPI_Win_errhandler_function MPI_Win_errhandler_fn;
typedef MPI_File_errhandler_function MPI_File_errhandler_fn;
typedef MPI_Session_errhandler_function MPI_Session_errhandler_fn;
typedef int MPI_Datarep_extent_function(MPI_Datatype, MPI_Aint *extent, void *extra_state);
typedef int MPI_Datarep_conversion_function(void *user, MPI_Datatype, int count, void *file, MPI_Offset position, void *extra_state);
typedef int MPI_Datarep_conversion_function_c(void *user, MPI_Datatype, MPI_Count count, void *file, MPI_Offset position, void *extra_state);

#define MPI_NULL_COPY_FN ((MPI_Copy_function *)0)
#define MPI_DUP_FN ((MPI_Copy_function *)1)
#define MPI_NULL_DELETE_FN ((MPI_Delete_function *)0)
#define MPI_COMM_NULL_COPY_FN ((MPI_Comm_copy_attr_function *)0)
#define MPI_COMM_DUP_FN ((MPI_Comm_copy_attr_function *)1)
#define MPI_COMM_NULL_DELETE_FN ((MPI_Comm_delete_attr_function *)0)
#define MPI_TYPE_NULL_COPY_FN ((MPI_Type_copy_attr_function *)0)
#define MPI_TYPE_DUP_FN ((MPI_Type_copy_attr_function *)1)
#define MPI_TYPE_NULL_DELETE_FN ((MPI_Type_delete_attr_function *)0)
#define MPI_WIN_NULL_COPY_FN ((MPI_Win_copy_attr_function *)0)
#define MPI_WIN_DUP_FN ((MPI_Win_copy_attr_function *)1)
#define MPI_WIN_NULL_DELETE_FN ((MPI_Win_delete_attr_function *)0)
#define MPI_CONVERSION_FN_NULL ((MPI_Datarep_conversion_function *)0)
#define MPI_CONVERSION_FN_NULL_C ((MPI_Datarep_conversion_function_c *)0)

/* Addresses that are none */

#define MPI_BOTTOM ((void *)0)
#define MPI_IN_PLACE ((void *)1)
#define MPI_BUFFER_AUTOMATIC ((void *)2)
#define MPI_ARGV_NULL ((char **)0)
#define MPI_ARGVS_NULL ((char ***)0)
#define MPI_ERRCODES_IGNORE ((int *)0)
#define MPI_STATUS_IGNORE ((MPI_Status *)0)
#define MPI_STATUSES_IGNORE ((MPI_Status *)0)
#define MPI_UNWEIGHTED ((int *)10)
#define MPI_WEIGHTS_EMPTY ((int *)11)
#define MPI_DISPLACEMENT_CURRENT ((MPI_Offset)-1)

/* The tools' interface */

typedef struct MPI_ABI_T_enum *MPI_T_enum;
typedef struct MPI_ABI_T_cvar_handle *MPI_T_cvar_handle;
typedef struct MPI_ABI_T_pvar_handle *MPI_T_pvar_handle;
typedef struct MPI_ABI_T_pvar_session *MPI_T_pvar_session;
typedef struct MPI_ABI_T_event_registration *MPI_T_event_registration;
typedef struct MPI_ABI_T_event_instance *MPI_T_event_instance;
#define MPI_T_ENUM_NULL ((MPI_T_enum)0)
#define MPI_T_CVAR_HANDLE_NULL ((MPI_T_cvar_handle)0)
#define MPI_T_PVAR_SESSION_NULL ((MPI_T_pvar_session)0)
#define MPI_T_PVAR_HANDLE_NULL ((MPI_T_pvar_handle)0)
#define MPI_T_PVAR_ALL_HANDLES ((MPI_T_pvar_handle)1)
typedef enum MPI_T_cb_safety {
	MPI_T_CB_REQUIRE_NONE = 0x00,
	MPI_T_CB_REQUIRE_MPI_RESTRICTED = 0x03,
	MPI_T_CB_REQUIRE_THREAD_SAFE = 0x0f,
	MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE = 0x3f
} MPI_T_cb_safety;
typedef enum MPI_T_source_order {
	MPI_T_SOURCE_ORDERED = 1,
	MPI_T_SOURCE_UNORDERED = 2
} MPI_T_source_order;
typedef void MPI_T_event_cb_function(MPI_T_event_instance, MPI_T_event_registration, MPI_T_cb_safety, void *user_data);
typedef void MPI_T_event_free_cb_function(MPI_T_event_registration, MPI_T_cb_safety, void *user_data);
typedef void MPI_T_event_dropped_cb_function(MPI_Count count, MPI_T_event_registration, int source_index, MPI_T_cb_safety, void *user_data);
`

const ending = `
#ifdef __cplusplus
}
#endif
#endif
`

// A handle is a predefined handle of MPI 5.0.
type handle struct {
	typ, name string
	id        int
}

// kinds are the kinds of handles, in the order of their numbers.
var kinds = []string{"op", "comm", "group", "win", "file", "session", "message", "info", "errhandler", "request",
	"datatype"}

// handlesOf returns the predefined handles of a kind by their numbers. Handles that MPI 5.0 lacks
// are left out: their numbers do not fit its code of ten bits, or belong to another name.
func handlesOf(kind string) (all []handle) {
	typ := "MPI_" + strings.ToUpper(kind[:1]) + kind[1:]
	for _, h := range abi.Handles() {
		if h.Kind == kind && strings.HasPrefix(h.Name, "MPI_") {
			all = append(all, handle{typ, h.Name, h.ID})
		}
	}
	if kind == "datatype" {
		all = append(all, handle{typ, "MPI_DATATYPE_NULL", abi.DatatypeNull})
		for name, t := range typemap.Names() {
			if id := t.Basic().ID; id < 0x400 && name != "MPI_CXX_COMPLEX" {
				all = append(all, handle{typ, name, id})
			}
		}
	}
	slices.SortFunc(all, func(a, b handle) int { return cmp.Or(a.id-b.id, strings.Compare(a.name, b.name)) })
	return all
}

// writeHeader writes the mpi.h of the standard interface.
func writeHeader(w io.Writer) {
	fmt.Fprint(w, preamble, "\n/* Handles */\n")
	for _, kind := range kinds {
		handles := handlesOf(kind)
		typ := "MPI_" + strings.ToUpper(kind[:1]) + kind[1:]
		fmt.Fprintf(w, "\ntypedef struct %s *%s;\n", strings.Replace(typ, "MPI_", "MPI_ABI_", 1), typ)
		for _, h := range handles {
			fmt.Fprintf(w, "#define %s ((%s)%#x)\n", h.name, h.typ, h.id)
		}
	}
	chapter := ""
	for _, c := range Constants() {
		if c.Chapter != chapter {
			chapter = c.Chapter
			fmt.Fprintf(w, "\n/* %s */\n\n", chapter)
		}
		fmt.Fprintf(w, "#define %s %s\n", c.Name, parenthesized(c.Value))
	}
	fmt.Fprint(w, functionTypes)
	fmt.Fprintf(w, "\n/* Error classes that MPI 5.0 has not */\n\n#define MPIX_ERR_PROC_FAILED %d\n"+
		"#define MPIX_ERR_PROC_FAILED_PENDING %d\n#define MPIX_ERR_REVOKED %d\n",
		abi.ErrProcFailed, abi.ErrProcFailedPending, abi.ErrRevoked)
	writeDeclarations(w)
	fmt.Fprint(w, ending)
}

func parenthesized(n int) string {
	if n < 0 {
		return fmt.Sprintf("(%d)", n)
	}
	return fmt.Sprint(n)
}

// writeDeclarations declares all functions of MPI 5.0, by both of their names, and gompi's
// further functions that have a name of MPIX_.
func writeDeclarations(w io.Writer) {
	chapter := ""
	for _, f := range append(slices.Clone(Functions()), Missing()...) {
		name := "MPI_" + f.Name
		if f.Beside {
			if name = f.Other; name == "" {
				continue
			}
		}
		if f.Chapter != chapter {
			chapter = f.Chapter
			fmt.Fprintf(w, "\n/* %s */\n\n", chapter)
		}
		declare(w, name, f.Prototype(false))
		if f.HasLarge() {
			declare(w, name+"_c", f.Prototype(true))
		}
	}
}

func declare(w io.Writer, name string, p prototype) {
	var params []string
	for _, x := range p.Params {
		params = append(params, x.String())
	}
	list := strings.Join(params, ", ")
	for _, prefix := range []string{"", "P"} {
		fmt.Fprintf(w, "%s %s%s(%s);\n", p.Result, prefix, name, cmp.Or(list, "void"))
	}
}
