// Package mpi has MPI's semantics over internal/core: Call calls a function of MPI by its number,
// and its communicator's error handler if it fails. It has no C in it.
//
// Each function of MPI is a Go function of one of the packages below: MPI_Type_create_hvector is
// dtypes.TypeCreateHvector. A collective is a Plan that collective.Plan's Fill or Neighbor makes of
// its row in package calls. Handles that the caller gives have been looked up (nil if they are not
// valid), addresses are numbers, what the function stores is returned. Package table holds their
// arguments, from which dispatch.go is generated. Each package imports those before it:
//
//	table, datatype         the functions and handles that there are; what a datatype is
//	abi                     addresses, statuses, handles: what crosses to C
//	errs                    errors, classes and codes, error handlers
//	infos, attrs            info objects; attributes
//	dtypes, ops             datatypes with handles; operators
//	comms                   groups, communicators, intercommunicators, topologies, sessions, buffers
//	p2p                     messages, requests
//	collective              collectives in three forms
//	files                   files
//
// Numbers are those of the binary interface of MPI 5.0 where it has them; a face (mpi/libmpi)
// converts them to and from those of its mpi.h. Element types end here: a message is bytes to core,
// and a reduction has opaque elements where core has no type for them.
//
// Messages and collectives may be called from any thread (MPI_THREAD_MULTIPLE). What changes
// objects holds a lock of its own.
package mpi

//go:generate go run gompi/mpi/libmpi/generate go dispatch.go
//go:generate go run gompi/mpi/libmpi/generate shared ../libmpi/shared.h
