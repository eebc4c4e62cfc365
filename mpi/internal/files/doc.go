// Package files has MPI's files, on file systems that have POSIX's interface.
//
// A file is a descriptor of each rank, and a communicator of its own. Data moves by preadv and
// pwritev, one call for each run of bytes in the file that the view leaves. Each rank moves what is
// its own, but in blocking collective calls whose short runs interleave: exchange.go has these.
// What ranks have in common they agree on in messages: modes, views, sizes; one that has failed
// fails on all. The shared file pointer is in a small file beside the file, which every host
// reaches that reaches the file.
//
// MPI's functions for files are in access.go (data), open.go, view.go, pointers.go and settings.go.
package files
