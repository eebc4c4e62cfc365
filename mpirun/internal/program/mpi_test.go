package program

import "testing"

func TestMPILibrariesAreKnownByTheirNames(t *testing.T) {
	for lib, want := range map[string]struct{ openMPI, mpich, abi bool }{
		"libmpi.so.40": {openMPI: true}, "libmpi.so.40.30.4": {openMPI: true}, "libmpi.so.20": {openMPI: true},
		"libmpi.so.1":      {openMPI: true},
		"libmpi_cxx.so.40": {openMPI: true}, "libmpi_mpifh.so.40": {openMPI: true},
		"libmpi_usempif08.so.40": {openMPI: true},
		"liboshmem.so.40":        {openMPI: true}, "libmpi.so.12": {mpich: true}, "libmpi.so.12.0.0": {mpich: true},
		"libmpich.so.12.2.2": {mpich: true},
		"libmpi_cray.so.12":  {mpich: true}, "libmpifort.so.12": {mpich: true}, "libmpi_abi.so.1": {abi: true},
		"libmpi_abi.so.0.0.0": {abi: true},
		"libmpi_abi.so":       {}, "libmpi.so": {}, "libc.so.6": {}, "libmpi.so.x": {},
		"libmpi.so.99999999999999999999": {},
	} {
		if IsOpenMPI(lib) != want.openMPI || IsMPICH(lib) != want.mpich || IsABI(lib) != want.abi {
			t.Errorf("%s: Open MPI's %v, MPICH's %v, the standard's %v; want %v", lib, IsOpenMPI(lib), IsMPICH(lib),
				IsABI(lib), want)
		}
	}
}
