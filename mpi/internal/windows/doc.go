// Package windows is MPI's one-sided communication (MPI-4.1 chapter 12): windows with handles
// over package rma, the epochs in which a program may access them, operations between datatypes,
// and windows' attributes, names and error handlers.
//
// Hints are ignored, except alloc_shared_noncontig. Of assertions MPI_MODE_NOCHECK saves messages
// and locks. The memory model is MPI_WIN_UNIFIED.
package windows
