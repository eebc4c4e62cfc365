// Package core is the engine: communicators and requests, how a process joins a job, the
// agreements of its ranks. Below are the parts of a message and of a collective, and the memory
// that ranks share; above are faces: package comm for Go, package mpi for the MPI libraries, rma
// for windows. Faces define the promises to users. So the comments here say what the next layer
// needs.
package core
