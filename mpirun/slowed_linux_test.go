package mpirun

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/stress"
	"gompi/mpirun/internal/report"
)

// slowedMain runs a program: slowed RANKS TAKES PROGRAM ARGUMENT... A second of processor time
// takes each rank TAKES seconds, and RANKS, such as 1,3, a fifth longer.
func slowedMain() {
	takes, err := strconv.ParseFloat(os.Args[2], 64)
	if err != nil {
		panic(err)
	}
	if len(os.Args) == 3 { // beside the process of a rank
		pid, err := strconv.Atoi(os.Args[1])
		if err != nil {
			panic(err)
		}
		slow(pid, takes-1)
		return
	}
	if slices.Contains(strings.Split(os.Args[1], ","), os.Getenv("GOMPI_RANK")) {
		takes *= 1.2
	}
	if takes > 1 {
		self, err := os.Executable()
		if err != nil {
			panic(err)
		}
		beside := exec.Command(self, strconv.Itoa(os.Getpid()), fmt.Sprint(takes))
		beside.Args[0] = "slowed"
		if err := beside.Start(); err != nil {
			panic(err)
		}
	}
	program := os.Args[3:]
	panic(syscall.Exec(program[0], program, os.Environ()))
}

// slow has a process rest for that many seconds after each second of a processor, until it ends.
func slow(pid int, rests float64) {
	clock := int32(^pid<<3 | 2) // as clock_getcpuclockid has it
	for done, last := 5*time.Millisecond, time.Duration(0); ; time.Sleep(time.Millisecond) {
		now, err := computed(clock)
		if err != nil {
			return
		}
		if now-last < done {
			continue
		}
		if syscall.Kill(pid, syscall.SIGSTOP) != nil {
			return
		}
		time.Sleep(time.Duration(rests * float64(now-last)))
		if syscall.Kill(pid, syscall.SIGCONT) != nil {
			return
		}
		last = now
	}
}

// computed returns the time of a clock of processor time.
func computed(clock int32) (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(clock, &t)
	return time.Duration(t.Nano()), err
}

// Programs as they are: LAMMPS of Debian on gompi's MPI library, examples/train in Go, and
// examples/pytorch/cnn.py over gompi, of which each rank in turn is slowed, and two of four. (make
// nightly)
func TestStressTheSlowRankOfPrograms(t *testing.T) {
	stress.Nightly(t, "it takes minutes")
	gompirun, _ := withMPI(t)
	for name, program := range map[string]func(t *testing.T) []string{
		"train": trainProgram, "lammps": lammpsProgram, "torch": torchProgram} {
		t.Run(name, func(t *testing.T) {
			argv := program(t)
			for ranks, cases := range map[int][][]int{2: {{0}, {1}}, 4: {{0}, {1}, {2}, {3}, {1, 3}}} {
				for _, slow := range cases {
					for how, flags := range map[string][]string{"shm": nil, "tcp": {"-x", "GOMPI_TRANSPORT=tcp"}} {
						t.Run(fmt.Sprintf("%s/%d/%s", how, ranks, list(slow)), func(t *testing.T) {
							namesSlow(t, gompirun, ranks, slow, flags, argv)
						})
					}
				}
			}
		})
	}
}

func list(ranks []int) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(ranks), "[]"), " ", ",")
}

func trainProgram(t *testing.T) []string { return []string{example(t, "train"), "-steps", "20"} }

// example builds one.
func example(t *testing.T, name string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	if out, err := exec.Command("go", "build", "-o", program, "../examples/"+name).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

func lammpsProgram(t *testing.T) []string {
	lmp, err := exec.LookPath("lmp")
	if err != nil {
		t.Skip("no LAMMPS: apt-get install lammps lammps-examples")
	}
	input := filepath.Join(t.TempDir(), "in.melt")
	text, err := os.ReadFile("/usr/share/lammps/examples/melt/in.melt")
	if err == nil { // 27 times as many atoms, a sixth of the steps
		text = regexp.MustCompile(`(?m)^region.*`).ReplaceAll(text, []byte("region box block 0 30 0 30 0 30"))
		text = regexp.MustCompile(`(?m)^run.*`).ReplaceAll(text, []byte("run 40"))
		err = os.WriteFile(input, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return []string{lmp, "-in", input, "-log", "none"}
}

func torchProgram(t *testing.T) []string {
	python := os.Getenv("GOMPI_TORCH_PYTHON")
	if python == "" {
		t.Skip("no PyTorch: make torch ONLY=build, GOMPI_TORCH_PYTHON=$PWD/bin/torch/bin/python")
	}
	data := filepath.Join(t.TempDir(), "data")
	if out, err := exec.Command(example(t, "cnn"), "-data", data, "-gen", "-samples",
		"2500").CombinedOutput(); err != nil {
		t.Fatalf("cnn: %v\n%s", err, out)
	}
	return []string{python, "-m", "gompi_torch", "../examples/pytorch/cnn.py", "--data", data, "--batch", "64", "1"}
}

// namesSlow runs a job until its slowed ranks were named in two runs of at most four, because
// other work of the machine slows ranks, too. If ranks outnumber processors, each gets four
// fifths of its part of them, on any processor: otherwise a rank would be as slow as the rank
// that shares its processor, and both would look slow to the others.
func namesSlow(t *testing.T, gompirun string, ranks int, slow []int, flags, program []string) {
	takes := 1.0
	if p := runtime.NumCPU(); ranks > p {
		takes = float64(ranks) / (0.8 * float64(p))
		flags = append(slices.Clone(flags), "-bind-to", "none")
	}
	file := filepath.Join(t.TempDir(), "stats.json")
	args := slices.Concat([]string{"-np", strconv.Itoa(ranks), "-stats=" + file, "-torch-backend", "gompi", "-x",
		"OMP_NUM_THREADS=1"},
		flags, []string{"slowed", list(slow), fmt.Sprint(takes)}, program)
	for right, wrong := 0, 0; right < 2; {
		status, out, errs := runCommand(t, gompirun, args...)
		var s report.Summary
		data, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(data, &s)
		}
		if status != 0 || err != nil {
			t.Fatalf("status %d, %v\n%s%s", status, err, out, errs)
		}
		if slices.Equal(s.Late, slow) {
			t.Log(s.Verdict)
			right++
			continue
		}
		wrong++
		t.Logf("%s: %+v", s.Verdict, s.PerRank)
		if wrong == 3 {
			t.Fatalf("ranks %v were slowed, and not named in %d of %d runs", slow, wrong, right+wrong)
		}
	}
}
