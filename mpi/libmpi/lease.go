//go:build linux && cgo

package main

// #include "core.h"
import "C"

import (
	"fmt"
	"os"
	"unsafe"

	"gompi/internal/env"
	"gompi/mpi/internal/comms"
)

//export gompi_mpi_lease
func gompi_mpi_lease() unsafe.Pointer {
	switch how := env.String(env.Short); how {
	case "on", "mix":
		return comms.Attach(how == "mix")
	case "off":
	default:
		fmt.Fprintf(os.Stderr, "gompi: %s=%q: want on, off or mix\n", env.Short, how)
	}
	return nil
}

//export gompi_mpi_wake
func gompi_mpi_wake(local C.int32_t) { comms.Wake(int(local)) }

//export gompi_mpi_stats
func gompi_mpi_stats(tool C.int32_t, s *C.struct_gompi_stats) C.int32_t {
	counters, worlds, on, err := comms.Stats(tool != 0)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gompi:", err)
		return 0
	}
	s.counters, s.worlds = (*C.struct_gompi_counters)(counters), (*C.int32_t)(worlds)
	return intOf(on)
}
