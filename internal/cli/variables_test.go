package cli

import (
	"slices"
	"testing"
)

func TestTorchrunsVariablesStandForItsFlags(t *testing.T) {
	vars := map[string]string{
		"PET_NNODES": "1:4", "PET_NPROC_PER_NODE": "gpu", "PET_RDZV_ENDPOINT": "head:29400", "PET_NODE_RANK": "0",
		"PET_STANDALONE": "0", "PET_MODULE": "1", "PET_RDZV_ID": "", "PET_UNKNOWN": "x",
	}
	var said []string
	got := TorchVariables(func(name string) (string, bool) { v, ok := vars[name]; return v, ok }, func(line string) { said = append(said, line) })
	want := []string{"-nnodes=1:4", "-nproc-per-node=gpu", "-rdzv-endpoint=head:29400", "-node-rank=0", "-module"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	const line = "gompirun: PET_NNODES, PET_NPROC_PER_NODE, PET_RDZV_ENDPOINT, PET_NODE_RANK, PET_MODULE: as -nnodes=1:4 -nproc-per-node=gpu -rdzv-endpoint=head:29400 -node-rank=0 -module"
	if len(said) != 1 || said[0] != line {
		t.Errorf("said %q, want %q", said, line)
	}
	said = nil
	if got := TorchVariables(func(string) (string, bool) { return "", false }, func(line string) { said = append(said, line) }); len(got)+len(said) > 0 {
		t.Errorf("without variables: %q, %q", got, said)
	}
}

func TestVariablesSayHowToLogIn(t *testing.T) {
	for _, tt := range []struct {
		vars          map[string]string
		command, from string
	}{
		{nil, "", ""},
		{map[string]string{"OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10"}, "ssh -o ConnectionAttempts=10", "OMPI_MCA_plm_rsh_args"},
		{map[string]string{"OMPI_MCA_plm_rsh_agent": "/etc/mpi/kubexec.sh"}, "/etc/mpi/kubexec.sh", "OMPI_MCA_plm_rsh_agent"},
		{map[string]string{"OMPI_MCA_plm_rsh_agent": "ssh -q : rsh"}, "ssh -q", "OMPI_MCA_plm_rsh_agent"},
		{map[string]string{"HYDRA_LAUNCHER_EXEC": "/opt/ssh", "HYDRA_LAUNCHER_EXTRA_ARGS": "-p 2222"}, "/opt/ssh -p 2222", "HYDRA_LAUNCHER_EXEC, HYDRA_LAUNCHER_EXTRA_ARGS"},
		{map[string]string{"I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": "-p 2222"}, "ssh -p 2222", "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS"},
	} {
		command, from := LoginVariables(func(name string) string { return tt.vars[name] })
		if command != tt.command || from != tt.from {
			t.Errorf("%v: %q by %q, want %q by %q", tt.vars, command, from, tt.command, tt.from)
		}
	}
}
