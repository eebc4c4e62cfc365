package record

import "testing"

func TestFunctionsOfMPIAreFoundOnTheStack(t *testing.T) {
	for function, want := range map[string]string{
		"gompi/mpi/internal.callRecv":              "MPI_Recv",
		"gompi/mpi/internal.callTypeCreateF90Real": "MPI_Type_create_f90_real",
		"gompi/mpi/internal.callGetElementsX":      "MPI_Get_elements_x",
		"gompi/mpi/internal.Finalize":              "MPI_Finalize",
		"gompi/mpi/internal.Recv":                  "",
		"gompi/mpi/internal.(*Request).await":      "",
		"gompi/comm.Recv":                          "",
	} {
		if name, ok := ofMPI(function); name != want || ok != (want != "") {
			t.Errorf("%s: %q, %v; want %q", function, name, ok, want)
		}
	}
}
