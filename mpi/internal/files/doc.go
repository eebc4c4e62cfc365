// Package files implements MPI's files, on file systems with POSIX's interface.
//
// A file is a descriptor of each rank, and a communicator of its own. Data moves by preadv and
// pwritev, a call for each run of bytes that the view leaves in the file. Each rank moves its own
// data, except in blocking collective calls whose short runs interleave (exchange.go). Ranks
// agree on modes, views and sizes in messages; a call that fails on a rank fails on all. The
// shared file pointer is in a small file beside the file, so that it is in reach of the same
// hosts.
//
// MPI's functions for files are in access.go (data), open.go, view.go, pointers.go and
// settings.go.
package files
