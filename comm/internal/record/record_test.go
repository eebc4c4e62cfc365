package record

import "testing"

func TestFunctionsOfMPIAreFoundOnTheStack(t *testing.T) {
	for function, want := range map[string]string{
		"gompi/comm/internal/mpi.callRecv":              "MPI_Recv",
		"gompi/comm/internal/mpi.callTypeCreateF90Real": "MPI_Type_create_f90_real",
		"gompi/comm/internal/mpi.callGetElementsX":      "MPI_Get_elements_x",
		"gompi/comm/internal/mpi.Finalize":              "MPI_Finalize",
		"gompi/comm/internal/mpi.Recv":                  "",
		"gompi/comm/internal/mpi.(*Request).await":      "",
		"gompi/comm.Recv":                               "",
	} {
		if name, ok := ofMPI(function); name != want || ok != (want != "") {
			t.Errorf("%s: %q, %v; want %q", function, name, ok, want)
		}
	}
}
