package cli

import (
	"slices"
	"testing"
)

func TestTorchrunsVariablesStandForItsFlags(t *testing.T) {
	vars := map[string]string{
		"PET_NNODES": "1:4", "PET_NPROC_PER_NODE": "gpu", "PET_RDZV_ENDPOINT": "head:29400", "PET_NODE_RANK": "0",
		"PET_STANDALONE": "0", "PET_MODULE": "2", "PET_NO_PYTHON": "yes", "PET_RDZV_ID": "", "PET_UNKNOWN": "x",
		"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "7", "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "a",
		"PET_LOG_LINE_PREFIX_TEMPLATE": "b",
	}
	var got []string
	for _, v := range TorchVariables(func(name string) (string, bool) { v, ok := vars[name]; return v, ok }) {
		text := v.Name + " " + v.Value + " " + v.Flag
		if v.Wrong != nil {
			text += " " + v.Wrong.Error()
		}
		got = append(got, text)
	}
	want := []string{
		"PET_NNODES 1:4 -nnodes=1:4", "PET_NPROC_PER_NODE gpu -nproc-per-node=gpu",
		"PET_RDZV_ENDPOINT head:29400 -rdzv-endpoint=head:29400",
		"PET_LOG_LINE_PREFIX_TEMPLATE b -log-line-prefix-template=b", "PET_NODE_RANK 0 -node-rank=0",
		"TORCH_ELASTIC_SHUTDOWN_TIMEOUT 7 -shutdown-timeout=7", "PET_MODULE 2 -module",
		"PET_NO_PYTHON yes -no-python want 1 or 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
	if got := TorchVariables(func(string) (string, bool) { return "", false }); len(got) > 0 {
		t.Errorf("without variables: %q", got)
	}
}

func TestVariablesSayHowToLogIn(t *testing.T) {
	for _, tt := range []struct {
		vars          map[string]string
		command, from string
	}{
		{nil, "", ""},
		{map[string]string{"OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10"}, "ssh -o ConnectionAttempts=10",
			"OMPI_MCA_plm_rsh_args"},
		{map[string]string{"OMPI_MCA_plm_rsh_agent": "/etc/mpi/kubexec.sh"}, "/etc/mpi/kubexec.sh",
			"OMPI_MCA_plm_rsh_agent"},
		{map[string]string{"OMPI_MCA_plm_rsh_agent": "ssh -q : rsh"}, "ssh -q", "OMPI_MCA_plm_rsh_agent"},
		{map[string]string{"HYDRA_LAUNCHER_EXEC": "/opt/ssh", "HYDRA_LAUNCHER_EXTRA_ARGS": "-p 2222"},
			"/opt/ssh -p 2222", "HYDRA_LAUNCHER_EXEC, HYDRA_LAUNCHER_EXTRA_ARGS"},
		{map[string]string{"I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": "-p 2222"}, "ssh -p 2222",
			"I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS"},
	} {
		command, from := LoginVariables(func(name string) string { return tt.vars[name] })
		if command != tt.command || from != tt.from {
			t.Errorf("%v: %q by %q, want %q by %q", tt.vars, command, from, tt.command, tt.from)
		}
	}
}
