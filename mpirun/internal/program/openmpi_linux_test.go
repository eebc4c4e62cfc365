package program

import "testing"

func TestOpenMPIIsKnownByItsLibrary(t *testing.T) {
	for lib, want := range map[string]bool{
		"libmpi.so.40": true, "libmpi.so.20": true, "libmpi.so.1": true, "libmpi_cxx.so.40": true,
		"libmpi_mpifh.so.40": true, "libmpi_usempif08.so.40": true, "liboshmem.so.40": true,
		"libmpi.so.12": false, "libmpich.so.12": false, "libmpi_abi.so.0": false, "libmpi.so": false, "libc.so.6": false,
		"libmpifort.so.12": false, "libmpi.so.99999999999999999999": false,
	} {
		if got := isOpenMPI(lib); got != want {
			t.Errorf("isOpenMPI(%q) = %v, want %v", lib, got, want)
		}
	}
}
