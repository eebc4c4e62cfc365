package mpirun

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"gompi/internal/stress"
	"gompi/mpirun/internal/report"
)

// slowedMain runs a program: slowed RANK PROGRAM ARGUMENT... That rank gets a process beside it
// that stops it for a sixth of the time: it works 20 % longer.
func slowedMain() {
	if len(os.Args) == 2 {
		pid, err := strconv.Atoi(os.Args[1])
		for ; err == nil; time.Sleep(50 * time.Millisecond) {
			if err = syscall.Kill(pid, syscall.SIGSTOP); err == nil {
				time.Sleep(10 * time.Millisecond)
				err = syscall.Kill(pid, syscall.SIGCONT)
			}
		}
		return
	}
	program := os.Args[2:]
	if os.Getenv("GOMPI_RANK") == os.Args[1] {
		self, err := os.Executable()
		if err == nil {
			beside := exec.Command(self, strconv.Itoa(os.Getpid()))
			beside.Args[0] = "slowed"
			err = beside.Start()
		}
		if err != nil {
			panic(err)
		}
	}
	panic(syscall.Exec(program[0], program, os.Environ()))
}

// Programs as they are: LAMMPS of Debian on gompi's MPI library, and examples/train in Go, of which
// each rank in turn is slowed. (make nightly)
func TestStressTheSlowRankOfPrograms(t *testing.T) {
	if !stress.Asked() {
		t.Skip("takes minutes: make nightly")
	}
	gompirun, _ := withMPI(t)
	dir := t.TempDir()
	train := filepath.Join(dir, "train")
	if out, err := exec.Command("go", "build", "-o", train, "../examples/train").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	programs := map[string][]string{"train": {train, "-steps", "60"}}
	if lmp, err := exec.LookPath("lmp"); err == nil {
		input := filepath.Join(dir, "in.melt")
		text, err := os.ReadFile("/usr/share/lammps/examples/melt/in.melt")
		if err == nil { // ten times as long
			err = os.WriteFile(input, regexp.MustCompile(`(?m)^run.*`).ReplaceAll(text, []byte("run 2500")), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		programs["lammps"] = []string{lmp, "-in", input, "-log", filepath.Join(dir, "log")}
	} else {
		t.Log("without LAMMPS: apt-get install lammps lammps-examples")
	}
	for name, program := range programs {
		for how, flags := range map[string][]string{"memory": nil, "tcp": {"-x", "GOMPI_TRANSPORT=tcp"}} {
			for _, slow := range []int{0, 1} {
				t.Run(fmt.Sprint(name, "/", how, "/", slow), func(t *testing.T) { slowed(t, gompirun, program, flags, slow) })
			}
		}
	}
}

// slowed runs a program on two ranks, of which one is slowed, until it was named in three runs of
// at most five: what else the machine does slows a rank, too.
func slowed(t *testing.T, gompirun string, program, flags []string, slow int) {
	file := filepath.Join(t.TempDir(), "stats.json")
	args := append([]string{"-np", "2", "-stats=" + file}, flags...)
	args = append(append(args, "slowed", strconv.Itoa(slow)), program...)
	for right, wrong := 0, 0; right < 3; {
		status, out, errs := runCommand(t, gompirun, args...)
		var s report.Summary
		data, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(data, &s)
		}
		if status != 0 || err != nil {
			t.Fatalf("status %d, %v\n%s%s", status, err, out, errs)
		}
		t.Log(s.Verdict)
		if slices.Equal(s.Late, []int{slow}) {
			right++
		} else if wrong++; wrong == 3 {
			t.Fatalf("rank %d was slowed, and not named in %d of %d runs", slow, wrong, right+wrong)
		}
	}
}
