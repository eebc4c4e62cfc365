// Package bench holds the C counterparts of gompi-bench and hello, for the MPI
// libraries that gompi is compared with.
package bench

import "embed"

// Peers has peers/mpibench.c, with the header it includes, and peers/mpihello.c.
//
//go:embed peers/*.c peers/*.h
var Peers embed.FS
