// Package abi has the types that cross between a C program and MPI in Go: addresses, arrays,
// texts and statuses in C's memory, numbers of handles and constants, MPI's own among them, and the
// face, which calls functions of the program.
package abi
