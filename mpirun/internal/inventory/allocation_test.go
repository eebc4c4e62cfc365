package inventory

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"gompi/hostfile"
)

// fakeMachine is a machine named "own" with this environment and these files.
func fakeMachine(vars, files map[string]string) Surroundings {
	return Surroundings{
		Getenv: func(name string) string { return vars[name] },
		Read: func(name string) ([]byte, error) {
			if data, ok := files[name]; ok {
				return []byte(data), nil
			}
			return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
		},
		IsLocal: func(name string) bool { return name == "localhost" || name == "own" },
	}
}

var plainMachine = fakeMachine(nil, nil)

// vars is an environment from "A=1 B=2"; a comma of a value is written as such.
func vars(text string) map[string]string {
	m := map[string]string{}
	for _, kv := range strings.Fields(text) {
		name, value, _ := strings.Cut(kv, "=")
		m[name] = strings.ReplaceAll(value, "_", " ")
	}
	return m
}

// shown writes hosts as name:slots.
func shown(hosts []hostfile.Host) string {
	var items []string
	for _, h := range hosts {
		items = append(items, fmt.Sprintf("%s:%d", h.Name, h.Slots))
	}
	return strings.Join(items, " ")
}

func TestHostsAreFoundWhereTheyStand(t *testing.T) {
	const slurm = "SLURM_JOB_ID=42 SLURM_JOB_NODELIST=n[1-3] "
	files := map[string]string{
		"pbs":   "n1\nn1\nn2\n",
		"each":  "n1\nn2\n",
		"pe":    "n1 4 all.q@n1 UNDEFINED\nn2.site 2 all.q@n2 <NULL>\n",
		"mine":  "n2 slots=1\nelsewhere slots=4\n",
		"many":  "n1 slots=100\n",
		"own":   "localhost slots=8\n",
		"far":   "elsewhere\n",
		"hydra": "w1:2\nw2:2\n",
		"not":   "^n2\n",

		"/etc/mpi/hostfile": "job-worker-0.job.ns.svc slots=2\njob-worker-1.job.ns.svc slots=2\n",
	}
	tests := []struct {
		name, env  string
		file, list string // -hostfile and -H
		hosts      string
		from       string
		warnings   int
		own        string
		aside      bool // the batch system is left aside
	}{
		{name: "nothing: this machine", hosts: "localhost:0", from: "this machine"},
		{name: "-H", list: "a:2,b", hosts: "a:2 b:1", from: "-H"},
		{name: "-hostfile", file: "mine", hosts: "n2:1 elsewhere:4", from: "-hostfile mine"},
		{name: "the user's own default", env: "GOMPI_HOSTFILE=mine HYDRA_HOST_FILE=hydra", hosts: "n2:1 elsewhere:4",
			from: "GOMPI_HOSTFILE=mine"},
		{name: "-H comes before defaults", env: "GOMPI_HOSTFILE=mine HYDRA_HOST_FILE=hydra", list: "a", hosts: "a:1",
			from: "-H"},

		{name: "Slurm, tasks", env: slurm + "SLURM_TASKS_PER_NODE=2(x2),1 SLURM_JOB_CPUS_PER_NODE=8(x3)",
			hosts: "n1:2 n2:2 n3:1", from: "Slurm job 42"},
		{name: "Slurm, cores", env: slurm + "SLURM_JOB_CPUS_PER_NODE=8(x2),4", hosts: "n1:8 n2:8 n3:4",
			from: "Slurm job 42"},
		{name: "Slurm, cores by task", env: slurm + "SLURM_JOB_CPUS_PER_NODE=8(x2),3 SLURM_CPUS_PER_TASK=4",
			hosts: "n1:2 n2:2 n3:1", from: "Slurm job 42"},
		{name: "Slurm, no counts", env: slurm, hosts: "n1:0 n2:0 n3:0", from: "Slurm job 42"},
		{name: "Slurm, old names", env: "SLURM_JOBID=7 SLURM_NODELIST=a SLURM_TASKS_PER_NODE=3", hosts: "a:3",
			from: "Slurm job 7"},
		{name: "inside a step its own counts are not the job's",
			env:   slurm + "SLURM_STEP_ID=0 SLURM_TASKS_PER_NODE=1 SLURM_NTASKS_PER_NODE=2 SLURMD_NODENAME=n2",
			hosts: "n1:2 n2:2 n3:2", from: "Slurm job 42", own: "n2"},
		{name: "inside a rank", env: slurm + "GOMPI_RANK=0 GOMPI_SLURM_SLOTS=42:2,2,1 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 SLURM_TASKS_PER_NODE=1(x2)",
			hosts: "n1:2 n2:2 n3:1", from: "Slurm job 42"},
		{name: "inside a rank of another job",
			env: slurm + "GOMPI_RANK=0 GOMPI_SLURM_SLOTS=41:2,2,1 SLURM_TASKS_PER_NODE=1(x3)", hosts: "n1:1 n2:1 n3:1",
			from: "Slurm job 42"},
		{name: "inside a step, cores", env: slurm +
			"SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1 SLURM_TASKS_PER_NODE=1 SLURM_JOB_CPUS_PER_NODE=4(x3) SLURM_CPUS_PER_TASK=2",
			hosts: "n1:2 n2:2 n3:2", from: "Slurm job 42"},
		{name: "this machine by its name", env: "SLURM_JOB_ID=7 SLURM_JOB_NODELIST=a,own", hosts: "a:0 own:0",
			from: "Slurm job 7", own: "own"},
		{name: "Slurm before PBS", env: slurm + "PBS_NODEFILE=pbs", hosts: "n1:0 n2:0 n3:0", from: "Slurm job 42"},
		{name: "a batch system before what stands there", env: slurm + "HYDRA_HOST_FILE=hydra K_MPI_JOB_ROLE=launcher",
			hosts: "n1:0 n2:0 n3:0", from: "Slurm job 42"},

		{name: "PBS", env: "PBS_NODEFILE=pbs PBS_JOBID=9.server", hosts: "n1:2 n2:1", from: "PBS job 9.server"},
		{name: "PBS, one slot each", env: "PBS_NODEFILE=each", hosts: "n1:1 n2:1", from: "PBS job"},
		{name: "LSF", env: "LSB_MCPU_HOSTS=n1_4_n2_2 LSB_DJOB_HOSTFILE=pbs LSB_JOBID=5", hosts: "n1:4 n2:2",
			from: "LSF job 5"},
		{name: "LSF, by address", env: "LSB_MCPU_HOSTS=2001:db8::5_4 LSB_JOBID=5", hosts: "2001:db8::5:4",
			from: "LSF job 5"},
		{name: "LSF, file", env: "LSB_DJOB_HOSTFILE=pbs LSB_HOSTS=x", hosts: "n1:2 n2:1", from: "LSF job"},
		{name: "LSF, words", env: "LSB_HOSTS=n1_n2_n1", hosts: "n1:2 n2:1", from: "LSF job"},
		{name: "Grid Engine", env: "PE_HOSTFILE=pe JOB_ID=3", hosts: "n1:4 n2.site:2", from: "Grid Engine job 3"},

		{name: "a hostfile chooses from an allocation", env: slurm + "SLURM_TASKS_PER_NODE=2(x3)", file: "mine",
			hosts: "n2:1", from: "Slurm job 42 and -hostfile mine", warnings: 1},
		{name: "and so does the user's default", env: slurm + "SLURM_TASKS_PER_NODE=2(x3) GOMPI_HOSTFILE=mine",
			hosts: "n2:1", from: "Slurm job 42 and GOMPI_HOSTFILE=mine", warnings: 1},
		{name: "no more slots than were allocated", env: slurm + "SLURM_TASKS_PER_NODE=2(x3)", file: "many",
			hosts: "n1:2", from: "Slurm job 42 and -hostfile many"},
		{name: "a hostfile may only leave hosts out", env: slurm + "SLURM_TASKS_PER_NODE=2(x3)", file: "not",
			hosts: "n1:2 n3:2", from: "Slurm job 42 and -hostfile not"},
		{name: "localhost is what the allocation calls it",
			env: slurm + "SLURMD_NODENAME=n3 SLURM_TASKS_PER_NODE=9(x3)", file: "own",
			hosts: "n3:8", from: "Slurm job 42 and -hostfile own", own: "n3"},
		{name: "-H leaves the others known", env: slurm, list: "n2,elsewhere", hosts: "n1:0 n2:0 n3:0",
			from: "Slurm job 42", warnings: 1},

		{name: "-H alone outside of an allocation", env: slurm, list: "elsewhere:2", hosts: "elsewhere:2", from: "-H",
			warnings: 1, aside: true},
		{name: "this machine outside of one", env: slurm, list: "localhost:2", hosts: "localhost:2", from: "-H",
			warnings: 1, aside: true},
		{name: "a hostfile outside of one", env: slurm, file: "far", hosts: "elsewhere:0", from: "-hostfile far",
			warnings: 1, aside: true},
		{name: "-H and a node file that is gone", env: "PBS_NODEFILE=gone", list: "a:2", hosts: "a:2", from: "-H",
			warnings: 1},
		{name: "and of LSF", env: "LSB_DJOB_HOSTFILE=gone", file: "mine", hosts: "n2:1 elsewhere:4",
			from: "-hostfile mine", warnings: 1},
		{name: "and of Grid Engine", env: "PE_HOSTFILE=gone", list: "a", hosts: "a:1", from: "-H", warnings: 1},
		{name: "-H and variables of Slurm that make no sense", env: "SLURM_JOB_ID=1 SLURM_JOB_NODELIST=n[1-", list: "a",
			hosts: "a:1", from: "-H", warnings: 1, aside: true},

		{name: "the MPI operator", env: "K_MPI_JOB_ROLE=launcher",
			hosts: "job-worker-0.job.ns.svc:2 job-worker-1.job.ns.svc:2", from: "the MPI operator's /etc/mpi/hostfile"},
		{name: "a worker of the MPI operator", env: "K_MPI_JOB_ROLE=worker", hosts: "localhost:0",
			from: "this machine"},
		{name: "the operator's file by Open MPI's name",
			env: "K_MPI_JOB_ROLE=launcher OMPI_MCA_orte_default_hostfile=mine", hosts: "n2:1 elsewhere:4",
			from: "OMPI_MCA_orte_default_hostfile=mine"},
		{name: "by hydra's", env: "HYDRA_HOST_FILE=hydra", hosts: "w1:2 w2:2", from: "HYDRA_HOST_FILE=hydra"},
		{name: "by Intel's", env: "I_MPI_HYDRA_HOST_FILE=hydra", hosts: "w1:2 w2:2",
			from: "I_MPI_HYDRA_HOST_FILE=hydra"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var warnings []string
			ask := Ask{Hostfile: tt.file, Lists: []string{tt.list}}
			a, _, err := fakeMachine(vars(tt.env), files).Find(ask, func(w string) { warnings = append(warnings, w) })
			if err != nil {
				t.Fatal(err)
			}
			if got := shown(a.List.Hosts); got != tt.hosts || a.From != tt.from || a.Own != tt.own {
				t.Errorf("%s from %s, own %q; want %s from %s, own %q", got, a.From, a.Own, tt.hosts, tt.from, tt.own)
			}
			if len(warnings) != tt.warnings {
				t.Errorf("warnings %q, want %d", warnings, tt.warnings)
			}
			if job := vars(tt.env)["SLURM_JOB_ID"] + vars(tt.env)["SLURM_JOBID"]; a.SlurmJob != job && !tt.aside {
				t.Errorf("Slurm job %q, want %q", a.SlurmJob, job)
			}
		})
	}
}

func TestHostsThatCannotBeReadAreNamed(t *testing.T) {
	const slurm = "SLURM_JOB_ID=42 SLURM_JOB_NODELIST=n[1-3] "
	files := map[string]string{"far": "elsewhere slots=2\n", "words": "n1\n", "empty": "\n", "not": "^n1\n"}
	tests := []struct{ env, file, list, want string }{
		{slurm + "SLURM_TASKS_PER_NODE=2(x2)", "", "",
			"Slurm job 42: SLURM_TASKS_PER_NODE=2(x2) counts for 2 nodes, and SLURM_JOB_NODELIST=n[1-3] names 3"},
		{slurm + "SLURM_TASKS_PER_NODE=2(x", "", "", "Slurm job 42: SLURM_TASKS_PER_NODE: counts "},
		{"SLURM_JOB_ID=1 SLURM_JOB_NODELIST=n[1-", "", "", "Slurm job 1: node list "},
		{slurm + "GOMPI_HOSTFILE=far", "", "",
			"GOMPI_HOSTFILE=far: no host of it is in Slurm job 42: want some of n1, n2, n3"},
		{slurm + "SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0", "", "", "srun has started 4 of me"},
		{slurm + "GOMPI_RANK=0 SLURM_TASK_PID=5 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0", "", "",
			"srun has started 4 of me"},
		{slurm + "SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=3", "", "", "one of several tasks"},
		{"PBS_NODEFILE=gone", "", "", "PBS_NODEFILE: open gone: file does not exist (if that job is over: unset its variables, name hosts, or -standalone "},
		{"LSB_MCPU_HOSTS=a_1_b", "", "", `LSB_MCPU_HOSTS="a 1 b": want pairs of a host and its slots`},
		{"LSB_MCPU_HOSTS=a_x", "", "", "LSB_MCPU_HOSTS: "},
		{"PE_HOSTFILE=words", "", "", `PE_HOSTFILE words: "n1": want a host and its slots`},
		{"PBS_NODEFILE=not", "", "", "PBS job: no host in it"},
		{"", "not", "", "-hostfile not: no host in it"},
		{"GOMPI_HOSTFILE=gone", "", "", "GOMPI_HOSTFILE: open gone"},
		{"HYDRA_HOST_FILE=empty", "", "", "empty: no host in it"},
		{"K_MPI_JOB_ROLE=launcher", "", "", "the MPI operator's hosts: open /etc/mpi/hostfile"},
	}
	for _, tt := range tests {
		ask := Ask{Hostfile: tt.file, Lists: []string{tt.list}}
		_, _, err := fakeMachine(vars(tt.env), files).Find(ask, func(string) {})
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.env, err, tt.want)
		}
	}
}

func TestStandaloneIsThisMachineEvenInAnAllocation(t *testing.T) {
	m := fakeMachine(vars("SLURM_JOB_ID=1 SLURM_JOB_NODELIST=a,b"), nil)
	a, _, err := m.Find(Ask{ThisMachine: true, Lists: []string{""}}, func(string) {})
	if err != nil || shown(a.List.Hosts) != "localhost:0" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestEachProgramMayNameItsHostsOfAnAllocation(t *testing.T) {
	m := fakeMachine(vars("SLURM_JOB_ID=1 SLURM_JOB_NODELIST=n[1-3] SLURM_TASKS_PER_NODE=2(x3) SLURMD_NODENAME=n1"), nil)
	_, shares, err := m.Find(Ask{Lists: []string{"n2,localhost", "n3:1"}}, func(w string) { t.Errorf("warning %q", w) })
	if err != nil {
		t.Fatal(err)
	}
	want := [][]hostfile.Share{{{Host: 0}, {Host: 1}}, {{Host: 2, Slots: 1}}}
	for i, s := range shares {
		if !slices.Equal(s, want[i]) {
			t.Errorf("program %d may use %v, want %v", i, s, want[i])
		}
	}
}

func TestHostsComeFromTheListsGiven(t *testing.T) {
	tests := []struct {
		lists []string
		names []string
		slots []int
	}{
		{[]string{""}, []string{"localhost"}, []int{0}},
		{[]string{"a:2,b"}, []string{"a", "b"}, []int{2, 1}},
		{[]string{"a:2", "b,a:1"}, []string{"a", "b"}, []int{3, 1}},
		{[]string{"a:2", ""}, []string{"a"}, []int{2}},
	}
	for _, tt := range tests {
		a, shares, err := plainMachine.Find(Ask{Lists: tt.lists}, func(string) {})
		if err != nil || len(a.List.Hosts) != len(tt.names) {
			t.Errorf("%q: %+v, %v", tt.lists, a, err)
			continue
		}
		for i, h := range a.List.Hosts {
			if h.Name != tt.names[i] || h.Slots != tt.slots[i] {
				t.Errorf("%q: host %d is %v, want %s with %d slots", tt.lists, i, h, tt.names[i], tt.slots[i])
			}
		}
		for i, s := range shares {
			if (len(s) == 0) != (tt.lists[i] == "") {
				t.Errorf("%q: program %d may use %v", tt.lists, i, s)
			}
		}
	}
}

// Whatever a batch system has set, it is hosts with names and counts, or an
// error.
func FuzzAllocation(f *testing.F) {
	f.Add("n[1-3]", "2(x3)", "", "a 4 b 2", "n1\nn1\nn2\n")
	f.Add("", "", "5", "", "n1 4 all.q UNDEFINED\n")
	f.Add("a,b", "3", "7", "x", "^n1\n")
	f.Fuzz(func(t *testing.T, nodes, counts, step, pairs, lines string) {
		machine := func(vars map[string]string) Surroundings { return fakeMachine(vars, map[string]string{"f": lines}) }
		for _, vars := range []map[string]string{
			{"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": nodes, "SLURM_TASKS_PER_NODE": counts, "SLURM_STEP_ID": step},
			{"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": nodes, "SLURM_JOB_CPUS_PER_NODE": counts,
				"SLURM_CPUS_PER_TASK": step},
			{"LSB_MCPU_HOSTS": pairs}, {"LSB_HOSTS": pairs}, {"PBS_NODEFILE": "f"}, {"PE_HOSTFILE": "f"},
		} {
			a, err := machine(vars).allocation()
			if err != nil || a == nil {
				continue
			}
			if len(a.List.Hosts) == 0 {
				t.Errorf("%q: no hosts and no error", vars)
			}
			for _, h := range a.List.Hosts {
				if h.Name == "" || strings.HasPrefix(h.Name, "-") || h.Slots < 0 || h.Slots > hostfile.MaxSlots {
					t.Errorf("%q: host %+v", vars, h)
				}
			}
		}
	})
}

func TestRanksLearnTheSlotsOfTheirJob(t *testing.T) {
	for _, tt := range []struct{ env, want string }{
		{"SLURM_JOB_ID=42 SLURM_JOB_NODELIST=n[1-3] SLURM_TASKS_PER_NODE=2(x2),1", "42:2,2,1"},
		{"SLURM_JOB_ID=42 SLURM_JOB_NODELIST=n[1-3] SLURM_TASKS_PER_NODE=1(x2) GOMPI_SLURM_SLOTS=42:4,4,4", "42:4,4,4"},
		{"SLURM_JOB_ID=42 SLURM_JOB_NODELIST=n[1-3]", ""},
		{"PATH=/bin", ""},
	} {
		if got := fakeMachine(vars(tt.env), nil).HandDown(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.env, got, tt.want)
		}
	}
}
