package cmdline

import "testing"

func TestNodesStartedOneByOneMeetWhereTheLineSays(t *testing.T) {
	for line, want := range map[string]string{
		"-nnodes 2 -rdzv-endpoint a p":                  "a:29400",
		"-nnodes 2 -rdzv-endpoint a:7 -master-addr b p": "a:7",
		"-nnodes 2 -node-rank 1 -master-addr b p":       "b:29400",
		"-nnodes 1:2 -master-addr b -master-port 9 p":   "b:9",
		"-nnodes 2 -rdzv-endpoint ::1 p":                "[::1]:29400",
		"-nnodes 1 -rdzv-endpoint a p":                  "", // one node meets no other
		"-nnodes 2 -H a,b -rdzv-endpoint a p":           "", // one gompirun starts both
		"-nnodes 2 -hostfile f -master-addr b p":        "",
		"-nnodes 2 p":                                   "",
	} {
		spec, _, err := parse(line, testGetenv)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		place := ""
		if spec.OneByOne() {
			place = spec.RendezvousEndpoint()
		}
		if place != want {
			t.Errorf("%s: nodes meet at %q, want %q", line, place, want)
		}
	}
}

func TestFlagsThatContradictEachOtherAreRefused(t *testing.T) {
	for line, want := range map[string]string{
		"-node-rank 2 -nnodes 2 -rdzv-endpoint a p": "-node-rank 2: want one below -nnodes",
		"-node-rank 0 -nnodes 2 -H a,b p":           "-node-rank is for a gompirun started on each node: want it, or -hostfile or -H, from which one gompirun starts all",
		"-node-rank 1 -nnodes 2 p":                  "-node-rank needs -rdzv-endpoint HOST:PORT, which says where node 0 is",
		"-nnodes 2 -rdzv-endpoint a p : q":          `":" and -node-rank: want one program`,
		"-nnodes 2 -rdzv-endpoint a:b:c p":          `-rdzv-endpoint "a:b:c": want host:port`,
		"-standalone -nnodes 2 p":                   "-standalone is this machine alone: want no -hostfile with it, and no -nnodes above 1",
		"-standalone -H a p":                        "-standalone is this machine alone: want no -H with it",
		"-torch-backend gloo train.py":              `-torch-backend "gloo": want gompi, or nothing: without the flag scripts have the backend that they ask for`,
		"-m -no-python p":                           "-m and -no-python: want one of them",
		"-np 1 p : -m -no-python q":                 `program 2, after ":": -m and -no-python: want one of them`,
		"-detach -hostfile - p":                     "-detach and -hostfile -: want a file: the job has no standard input",
		"-detach -nnodes 2 -rdzv-endpoint a p":      "-detach and a gompirun on each node: want -hostfile or -H, from which one gompirun starts all",
		"-stdin some p":                             `-stdin "some": want a rank, all or none`,
		"-output-filename d -outfile-pattern f p":   "-output-filename, and -outfile-pattern or -errfile-pattern: want one of them",
		"-output-filename d:now p":                  `-output-filename "d:now": "now": want nocopy, nojobid or both after the colon`,
	} {
		if _, _, err := parse(line, testGetenv); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

func TestDoctorTakesHostsAndHowToReachThem(t *testing.T) {
	spec, err := ParseDoctor([]string{"-machinefile", "f", "-H", "a,b", "-port-range", "5000-5009", "-rsh", "ssh -v",
		"-start-timeout", "7"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if spec.Hostfile != "f" || spec.Programs[0].Hosts != "a,b" || spec.PortRange != "5000-5009" ||
		spec.Reach.RSH != "ssh -v" || spec.Reach.Limit().Seconds() != 7 {
		t.Errorf("%+v lacks what was given", spec)
	}
	for arg, want := range map[string]string{
		"prog":           `argument "prog": want flags only (gompirun doctor -h lists them)`,
		"-port-range=9-": `-port-range "9-": want`,
	} {
		if _, err := ParseDoctor([]string{arg}, nil); err == nil ||
			err.Error()[:min(len(want), len(err.Error()))] != want {
			t.Errorf("%s: %v, want %s", arg, err, want)
		}
	}
}

func TestAttachTakesARank(t *testing.T) {
	want := Attach{Rank: 3, Job: "j", Debugger: "gdb -p"}
	for _, args := range [][]string{{"-job", "j", "3", "-debugger", "gdb -p"}, {"-debugger=gdb -p", "-job=j", "3"}} {
		if got, err := ParseAttach(args); err != nil || *got != want {
			t.Errorf("%q: %+v, %v; want %+v", args, got, err, want)
		}
	}
	for arg, want := range map[string]string{
		"x": `"x": want a rank`, "-1": "unknown flag -1: -h lists the flags", "": `"": want a rank`,
		"-job": "-job needs a value",
	} {
		if _, err := ParseAttach([]string{arg}); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", arg, err, want)
		}
	}
	for _, args := range [][]string{nil, {"1", "p"}} {
		if _, err := ParseAttach(args); err == nil || err.Error() != "want one rank (gompirun attach -h)" {
			t.Errorf("%q: %v, want that one rank is wanted", args, err)
		}
	}
}
