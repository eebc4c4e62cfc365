// Package mpi has MPI's semantics over internal/core: Call calls a function of MPI by its number,
// and its communicator's error handler after a failure. The package has no C.
//
// Each function of MPI is a Go function of a package below: MPI_Type_create_hvector is
// dtypes.TypeCreateHvector. A collective is a Plan that collective.Plan's Fill or Neighbor makes
// of its row in package calls. The caller's handles have been looked up (nil if not valid),
// addresses are numbers, and results are returned. mpi/libmpi/generate has the table of
// functions and their arguments, from which dispatch.go is generated. Each package imports the
// packages before it:
//
//	typemap                 the datatypes themselves
//	abi                     addresses, statuses, handles: the types that cross to C
//	errs                    errors, classes and codes, error handlers
//	infos, attrs            info objects; attributes
//	dtypes                  datatypes with handles; operators
//	comms, topologies       groups, communicators, intercommunicators, sessions, buffers; topologies
//	p2p                     messages, requests
//	collective              collectives in three forms
//	files                   files
//
// Numbers are the numbers of MPI 5.0's binary interface where it has them; a face (mpi/libmpi)
// converts them to and from the numbers of its mpi.h. Element types end here: a message is bytes
// to core, and a reduction has opaque elements where core has no type for them.
//
// Messages and collectives may be called from any thread (MPI_THREAD_MULTIPLE). Functions that
// change objects hold the objects' own locks.
package mpi

//go:generate go run gompi/mpi/libmpi/generate go dispatch.go
//go:generate go run gompi/mpi/libmpi/generate calls ../../internal/calls/functions.go
//go:generate go run gompi/mpi/libmpi/generate errs errs/table.go
//go:generate go run gompi/mpi/libmpi/generate docs ../../docs/mpi-functions.md
//go:generate go run gompi/mpi/libmpi/generate shared ../libmpi/shared.h
