//go:build linux && cgo

package main

// #include "core.h"
// static size_t layout(size_t i)
// {
// 	static const size_t all[] = GOMPI_LAYOUT;
// 	return i < sizeof all / sizeof *all ? all[i] : 0;
// }
// static size_t stats_layout(size_t i)
// {
// 	static const size_t all[] = GOMPI_STATS_LAYOUT;
// 	return i < sizeof all / sizeof *all ? all[i] : 0;
// }
import "C"

import (
	"fmt"
	"os"
	"slices"
	"unsafe"

	"gompi/comm/internal/mpi/comms"
	"gompi/internal/env"
	"gompi/internal/stats"
)

// cLayout is the layout of the lease in C, as far as that has one.
func cLayout() (all []uintptr) {
	for i := C.size_t(0); C.layout(i) > 0; i++ {
		all = append(all, uintptr(C.layout(i)))
	}
	return all
}

//export gompi_mpi_lease
func gompi_mpi_lease() unsafe.Pointer {
	how := env.String(env.Short)
	switch how {
	case "on", "mix":
	case "off":
		return nil
	default:
		fmt.Fprintf(os.Stderr, "gompi: %s=%q: want on, off or mix\n", env.Short, how)
		return nil
	}
	if !slices.Equal(cLayout(), comms.LeaseLayout()) {
		return nil // an architecture on which C and Go lay structs out differently
	}
	return comms.Attach(how == "mix")
}

//export gompi_mpi_wake
func gompi_mpi_wake(local C.int32_t) { comms.Wake(int(local)) }

// cStatsLayout is the layout of package stats in C.
func cStatsLayout() (all []uintptr) {
	for i := C.size_t(0); C.stats_layout(i) > 0; i++ {
		all = append(all, uintptr(C.stats_layout(i)))
	}
	return all
}

//export gompi_mpi_stats
func gompi_mpi_stats(tool C.int32_t, s *C.struct_gompi_stats) C.int32_t {
	if !slices.Equal(cStatsLayout(), stats.Layout()) {
		return 0 // as with the lease
	}
	counters, worlds, on, err := comms.Stats(tool != 0)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gompi:", err)
		return 0
	}
	s.counters, s.worlds = (*C.struct_gompi_counters)(counters), (*C.int32_t)(worlds)
	return intOf(on)
}
