// Package bench holds the counterparts of gompi-bench and hello for the MPI
// libraries that gompi is compared with, in C, and for PyTorch.
package bench

import "embed"

// Peers has peers/mpibench.c, with the header it includes, peers/mpihello.c and
// peers/torchhello.py.
//
//go:embed peers/*.c peers/*.h peers/*.py
var Peers embed.FS
