package program

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestRanksGetTheEnvironmentButForOthersRanks(t *testing.T) {
	in := []string{
		"PATH=/bin", "GOMPI_LOG=debug", "GOMPI_RANK=3", "GOMPI_BOOT_FD=3", "RANK=1", "WORLD_SIZE=2", "RANKED=1",
		"PMI_FD=5", "PMIX_ID=x",
		"OMPI_COMM_WORLD_RANK=1", "OMPI_MCA_btl=tcp", "GOMAXPROCS=3", "OMP_NUM_THREADS=2", "SLURM_JOB_ID=7",
		"SLURM_PROCID=0",
		"TORCHELASTIC_RUN_ID=x", "EMPTY=", "MASTER_PORT=12340", "SLURM_NNODES=2", "SLURM_TASK_PID=5",
		"SLURM_TASKS_PER_NODE=1(x2)",
	}
	want := []string{"PATH=/bin", "GOMPI_LOG=debug", "RANKED=1", "OMPI_MCA_btl=tcp", "GOMAXPROCS=3",
		"OMP_NUM_THREADS=2", "SLURM_JOB_ID=7", "EMPTY="}
	if got := ForwardedEnv(in); !slices.Equal(got, want) {
		t.Errorf("ForwardedEnv gives %q, want %q", got, want)
	}
}

func TestMergeHasEachNameOnceWithItsLastValue(t *testing.T) {
	base := []string{"A=1", "B=2", "AB=3"}
	tests := []struct{ more, want []string }{
		{nil, []string{"A=1", "B=2", "AB=3"}},
		{[]string{"A=9"}, []string{"A=9", "B=2", "AB=3"}},
		{[]string{"C=", "C=5"}, []string{"A=1", "B=2", "AB=3", "C=5"}},
		{[]string{"B=x=y", "A="}, []string{"A=", "B=x=y", "AB=3"}},
	}
	for _, tt := range tests {
		if got := MergeEnv(base, tt.more); !slices.Equal(got, tt.want) {
			t.Errorf("MergeEnv(%q, %q) = %q, want %q", base, tt.more, got, tt.want)
		}
	}
}

// A host has a home of its own, and may have been told by a file that its logins
// read which rank of a job it is.
func TestRanksOfAnotherHostFindWhatMakesSenseThere(t *testing.T) {
	launched := []string{"HOME=/home/me", "TMPDIR=/scratch", "DATA=/data", "CUDA_VISIBLE_DEVICES=0,1",
		"SLURMD_NODENAME=n1", "DISPLAY=:0"}
	own := []string{"HOME=/root", "SSH_TTY=/dev/pts/1", "RANK=9", "MASTER_PORT=1", "CUDA_VISIBLE_DEVICES=2",
		"SLURMD_NODENAME=n2", "LANG=C", "DATA=/mnt", "SLURM_GTIDS=0"}
	none := func(string) bool { return false }
	for _, tt := range []struct {
		remote bool
		want   []string
	}{
		{false, []string{"CUDA_VISIBLE_DEVICES=2", "DATA=/data", "DISPLAY=:0", "HOME=/home/me", "SLURMD_NODENAME=n2",
			"TMPDIR=/scratch"}},
		{true, []string{"CUDA_VISIBLE_DEVICES=2", "DATA=/data", "HOME=/root", "LANG=C", "SLURMD_NODENAME=n2"}},
	} {
		got := hostEnv(launched, own, tt.remote, none)
		if slices.Sort(got); !slices.Equal(got, tt.want) {
			t.Errorf("remote %v: %q, want %q", tt.remote, got, tt.want)
		}
	}
}

// sixRanks is the second node of a job of three, two and one ranks.
func sixRanks() *Node {
	return &Node{JobID: "j", Hosts: []string{"n1", "n2", "n4"}, Counts: []int{3, 2, 1}, Index: 1, Ranks: []int{3, 4},
		MasterAddr: "10.0.0.1", MasterPort: 4000}
}

func TestIdentitySaysWhichRankItIs(t *testing.T) {
	got := " " + strings.Join(sixRanks().Identity(1), " ") + " "
	for _, want := range []string{
		"GOMPI_RANK=4", "GOMPI_SIZE=6", "GOMPI_LOCAL_RANK=1", "GOMPI_LOCAL_SIZE=2", "GOMPI_NODE=1", "GOMPI_JOB_ID=j",
		"RANK=4", "WORLD_SIZE=6", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "GROUP_RANK=1", "GROUP_WORLD_SIZE=3",
		"MASTER_ADDR=10.0.0.1", "MASTER_PORT=4000",
		"OMPI_COMM_WORLD_RANK=4", "PMI_RANK=4", "PMI_HOSTNAME=n2",
	} {
		if !strings.Contains(got, " "+want+" ") {
			t.Errorf("no %s in%s", want, got)
		}
	}
}

func TestSlurmsVariablesDescribeTheRanks(t *testing.T) {
	n := sixRanks()
	if got := n.Slurm(1, []string{"SLURM_JOB_ID=", "PATH=/bin"}); got != nil {
		t.Errorf("in no job of Slurm: %q, want nothing", got)
	}
	got := n.Slurm(1, []string{"SLURM_JOB_ID=7"})
	want := strings.Fields(`SLURM_PROCID=4 SLURM_LOCALID=1 SLURM_NODEID=1 SLURM_GTIDS=3,4 SLURM_NTASKS=6 SLURM_NPROCS=6 SLURM_STEP_NUM_TASKS=6
		SLURM_NNODES=3 SLURM_STEP_NUM_NODES=3 SLURM_TASKS_PER_NODE=3,2,1 SLURM_STEP_TASKS_PER_NODE=3,2,1 SLURM_STEP_NODELIST=n1,n2,n4`)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	got = n.Slurm(1, []string{"SLURM_JOB_ID=7", "SLURM_NTASKS_PER_NODE=1"})
	if !slices.Equal(got, append(want, "SLURM_NTASKS_PER_NODE=3")) {
		t.Errorf("in a job with a number of tasks for each node: %q, want also how many ranks a node has at most", got)
	}
	alone := &Node{Hosts: []string{"localhost"}, Counts: []int{1}, Ranks: []int{0}}
	if got := alone.Slurm(0, []string{"SLURM_JOB_ID=7", "SLURMD_NODENAME=n2"}); !slices.Contains(got,
		"SLURM_STEP_NODELIST=n2") {
		t.Errorf("-standalone: %q, want the node by the name that Slurm has for it", got)
	}
}

func TestCountsAreWrittenAsSlurmDoes(t *testing.T) {
	for want, counts := range map[string][]int{"1": {1}, "2(x3)": {2, 2, 2}, "2(x2),1": {2, 2, 1},
		"1,2,1(x2)": {1, 2, 1, 1}} {
		if got := taskCounts(counts); got != want {
			t.Errorf("taskCounts(%v) = %q, want %q", counts, got, want)
		}
	}
}

func TestReplacedNamesWhatTheUserHasSet(t *testing.T) {
	for _, tt := range []struct{ user, want string }{
		{"PATH=/bin OMP_NUM_THREADS=2 GLOO_SOCKET_IFNAME=eth0 SLURM_NTASKS=7", ""},
		{"MASTER_PORT=12340 WORLD_SIZE=7 RANK=9",
			"MASTER_PORT=12340 by 4000; RANK=9 by what each rank is; WORLD_SIZE=7 by 6"},
		{"WORLD_SIZE=6 MASTER_ADDR=10.0.0.1 GROUP_WORLD_SIZE=2", "GROUP_WORLD_SIZE=2 by 3"},
		{"WORLD_SIZE=7 WORLD_SIZE=6", ""},
		{"GOMPI_RANK=1 RANK=1 WORLD_SIZE=2", ""},
		{"TORCHELASTIC_RUN_ID=x RANK=1 WORLD_SIZE=2", ""},
	} {
		if got := strings.Join(sixRanks().Replaced(strings.Fields(tt.user)), "; "); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.user, got, tt.want)
		}
	}
}

func ExampleMergeEnv() {
	defaults, user, rank := []string{"OMP_NUM_THREADS=4", "RANK=0"}, []string{"OMP_NUM_THREADS=1", "RANK=9"},
		[]string{"RANK=3"}
	fmt.Println(MergeEnv(defaults, user, rank))
	// Output: [OMP_NUM_THREADS=1 RANK=3]
}

func TestThreadsOfARankAreItsShare(t *testing.T) {
	for _, tt := range []struct{ cpus, cores, quota, ranks, procs, threads int }{
		{0, 8, 0, 2, 4, 4},
		{3, 8, 0, 2, 3, 3}, // bound
		{0, 2, 0, 4, 2, 1}, // oversubscribed: Go wants a thread for communication all the same
		{0, 8, 4, 2, 2, 2},
		{3, 8, 1, 2, 2, 1},
	} {
		want := []string{fmt.Sprintf("GOMAXPROCS=%d", tt.procs), fmt.Sprintf("OMP_NUM_THREADS=%d", tt.threads)}
		if got := ThreadEnv(tt.cpus, tt.cores, tt.quota, tt.ranks); !slices.Equal(got, want) {
			t.Errorf("%+v: %q, want %q", tt, got, want)
		}
	}
}
