// Package bench holds the counterparts of gompi-bench and hello for the MPI
// libraries that gompi is compared with and for UCX, in C, and for PyTorch.
package bench

import "embed"

// Peers has peers/mpibench.c, peers/mpiddp.c and peers/ucxbench.c, with the headers they include,
// peers/mpihello.c, and the scripts for PyTorch.
//
//go:embed peers/*.c peers/*.h peers/*.py
var Peers embed.FS
