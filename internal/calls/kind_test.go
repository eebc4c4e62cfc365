package calls

import "testing"

// A row that says more for one rank than for the rest is for a root, or for exscan's first.
func TestRanksDifferOnlyWhereThereIsARoot(t *testing.T) {
	for i, row := range Table {
		k := Kind(i)
		differ := row.Send.AtRoot != row.Send.Elsewhere || row.Recv.AtRoot != row.Recv.Elsewhere
		if want := k.Rooted() || k == Exscan; differ != want {
			t.Errorf("%v has two roles: %v, want %v", k, differ, want)
		}
	}
}

func TestEveryCallHasARow(t *testing.T) {
	names := map[string]bool{}
	for k := range Kind(Count) {
		if row := Table[k]; row.Name == "" || names[row.Name] {
			t.Errorf("call %d is named %q: want a name of its own", k, row.Name)
		}
		names[Table[k].Name] = true
		if k.Exchanges() && k.MPI() == "" {
			t.Errorf("%v has no name of MPI", k)
		}
	}
	for k, row := range Table[Count:] {
		if name := row.Name; name != row.MPI || name != "" && Functions[name] != Kind(Count+k) {
			t.Errorf("call %d is named %q and %q: want Count above it, or one of MPI's functions, once", Count+k,
				name, row.MPI)
		}
	}
}

func TestNamesOfMPI(t *testing.T) {
	for k, want := range map[Kind]string{
		ReduceScatterBlock: "MPI_Ireduce_scatter_block", Dup: "MPI_Comm_idup", Split: "MPI_Comm_split",
		Send:  "MPI_Isend",
		Probe: "MPI_Probe", Alloc: "", None: "",
	} {
		if got := k.MPINonblocking(); got != want {
			t.Errorf("%v is started by %q: want %q", k, got, want)
		}
	}
}
