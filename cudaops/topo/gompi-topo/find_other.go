//go:build !linux || !cgo

package main

import "gompi/cudaops/topo"

// find knows nothing: NVML is there on Linux alone, and its binding needs C.
func find() *topo.Host {
	return &topo.Host{Trouble: "this gompi-topo was built without C or not for Linux, and cannot ask NVML: want CGO_ENABLED=1 go build gompi/cudaops/topo/gompi-topo"}
}
