// Package core is the engine: communicators and requests, how a process joins a job, what its ranks
// agree on, and the memory that they share. Below it are the parts of a message and of a
// collective; above it are faces: package comm for Go, package mpi for the MPI libraries, rma for
// windows. A face says what users may rely on. So the comments here say what the next layer needs.
package core
