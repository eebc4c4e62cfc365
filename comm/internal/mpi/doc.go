// Package mpi has MPI's semantics over comm: handles, datatypes, requests, statuses, operators,
// groups, communicators, attributes, topologies, errors. It has no C in it.
//
// Each function of MPI is a Go function: MPI_Type_create_hvector is TypeCreateHvector. Handles that
// the caller gives have been looked up (nil if they are not valid), addresses are numbers, what the
// function stores is returned. Package table holds their arguments, from which dispatch.go is
// generated; Call calls one by its number, and its communicator's error handler if it fails.
//
// Numbers are those of the binary interface of MPI 5.0 where it has them; a face (comm/libmpi)
// converts them to and from those of its mpi.h. Element types end here: a message is bytes to comm,
// and a reduction has opaque elements where comm has no type for them.
//
// Messages and collectives may be called from any thread (MPI_THREAD_MULTIPLE). What changes
// objects holds a lock of its own.
package mpi

//go:generate go run gompi/comm/libmpi/generate go dispatch.go
