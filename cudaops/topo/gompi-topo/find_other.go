//go:build !linux || !cgo

package main

import "gompi/cudaops/topo"

// find finds nothing: NVML exists on Linux only, and its binding needs cgo.
func find() *topo.Host {
	return &topo.Host{Trouble: "this gompi-topo was built without C or not for Linux, and cannot ask NVML: want CGO_ENABLED=1 go build gompi/cudaops/topo/gompi-topo"}
}
