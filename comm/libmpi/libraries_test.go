//go:build linux && cgo

package main

import (
	"slices"
	"testing"
)

func TestMPILibrariesOfAProcess(t *testing.T) {
	for maps, want := range map[string][]string{
		"": nil,
		`55d0c0000000-55d0c0001000 r--p 00000000 08:01 1 /usr/bin/prog
7f0000000000-7f0000001000 r--p 00000000 08:01 2 /opt/gompi/lib/openmpi/libmpi.so
7f0000001000-7f0000002000 r-xp 00001000 08:01 3 /opt/gompi/lib/openmpi/libmpi.so.40
7f0000002000-7f0000003000 r-xp 00001000 08:01 4 /opt/gompi/lib/libgompi-mpi.so
7f0000003000-7f0000004000 r-xp 00001000 08:01 5 /usr/lib/libmpi_cxx.so.40.30.1
7f0000004000-7f0000005000 rw-p 00000000 00:00 0 [stack]
`: {"/opt/gompi/lib/openmpi/libmpi.so"},
		`7f0000000000-7f0000001000 r--p 00000000 08:01 2 /opt/gompi/lib/openmpi/libmpi.so.40
7f0000001000-7f0000002000 r--p 00000000 08:01 3 /usr/lib/libmpich.so.12.2.2
7f0000002000-7f0000003000 r-xp 00000000 08:01 3 /usr/lib/libmpich.so.12.2.2
`: {"/opt/gompi/lib/openmpi/libmpi.so.40", "/usr/lib/libmpich.so.12.2.2"},
	} {
		if got := mpiLibraries([]byte(maps)); !slices.Equal(got, want) {
			t.Errorf("%q, want %q in\n%s", got, want, maps)
		}
	}
}
