//go:build linux && cgo

package main

// #include "core.h"
// static size_t layout(size_t i)
// {
// 	static const size_t all[] = GOMPI_LAYOUT;
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
