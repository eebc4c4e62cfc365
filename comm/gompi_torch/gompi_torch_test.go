//go:build linux

package gompitorch

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// The tests of gompi_torch, by scripts in its folder tests. make torch installs it and runs them.

type bed struct{ Bed }

func torchBed(t *testing.T) bed {
	t.Helper()
	return bed{NewBed(t)}
}

// script is Run for a script of the tests and as many ranks, with flags of gompirun before it.
func (b bed) script(t *testing.T, np int, flags []string, name string, args ...string) (output string, status int) {
	t.Helper()
	return b.Run(t, b.argv(np, flags, name, args...)...)
}

func (b bed) argv(np int, flags []string, name string, args ...string) []string {
	gompirun := []string{b.Gompirun, "-oversubscribe", "-np", strconv.Itoa(np)}
	return slices.Concat(gompirun, flags, []string{b.Python, filepath.Join("tests", name)}, args)
}

// torchrun is script by torch's own launcher.
func (b bed) torchrun(t *testing.T, np int, name string, args ...string) (output string, status int) {
	t.Helper()
	argv := []string{b.Python, "-m", "torch.distributed.run", "-r", "9:3", "-t", "9:3", "--standalone",
		"--nproc_per_node", strconv.Itoa(np)}
	return b.RunGloo(t, append(append(argv, filepath.Join("tests", name)), args...)...)
}

// tell fails the test unless as many ranks have said something that ends so, and the job has ended
// well. Under torchrun lines of ranks may run into each other.
func tell(t *testing.T, np int, end, output string, status int) {
	t.Helper()
	tellers := regexp.MustCompile(`rank \d.*?`+end).FindAllString(output, -1)
	if len(tellers) != np || status != 0 {
		t.Errorf("status %d, %d ranks say %q, want %d:\n%s", status, len(tellers), end, np, output)
	}
}

// make torch ONLY=build, which people type, fails where it makes nothing.
func TestABuildOfTorchThatIsNotMadeFails(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"g++", "apt-get"} { // there is none, and none to be had
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("../../.ci/torch", "build")
	cmd.Env = append(os.Environ(), "PYTHON=", "PATH="+dir+":"+os.Getenv("PATH"))
	out, _ := cmd.CombinedOutput()
	if output := string(out); cmd.ProcessState.ExitCode() != 1 ||
		!regexp.MustCompile(`torch: not built: .* g\+\+`).MatchString(output) {
		t.Errorf("%v: want status 1, and that g++ is missing:\n%s", cmd.ProcessState, output)
	}
}

func TestTorchCollectivesAreGloos(t *testing.T) {
	b := torchBed(t)
	for np := 1; np <= 4; np++ {
		output, status := b.RunGloo(t, b.argv(np, nil, "collectives.py")...)
		tell(t, np, "results are right", output, status)
	}
	output, status := b.RunGloo(t, b.argv(4, TwoHosts(t), "collectives.py")...)
	tell(t, 4, "results are right", output, status)
}

func TestTorchTrainsAsWithGloo(t *testing.T) {
	b := torchBed(t)
	for np := 1; np <= 4; np++ {
		output, status := b.RunGloo(t, b.argv(np, nil, "ddp.py")...)
		end := "gradients in the heap: True"
		if np == 1 {
			end = "gradients in the heap: (True|False)"
		}
		tell(t, np, end, output, status)
	}
	output, status := b.RunGloo(t, b.argv(4, TwoHosts(t), "ddp.py")...)
	tell(t, 4, "gradients in the heap: .*", output, status)
	output, status = b.torchrun(t, 2, "ddp.py")
	tell(t, 2, "gradients in the heap: True", output, status)
}

// Whatever way a rank ends, it is that rank which is named, and nothing is left waiting. Where it
// ends well while others wait for it, one of them is named, and says that it has left.
func TestTorchNamesTheRankThatEnds(t *testing.T) {
	b := torchBed(t)
	const left = `rank \d on localhost aborted the job with status 1: RuntimeError: .*rank %d \(host localhost\) has left`
	for way, want := range map[string]struct {
		status int
		blame  string
	}{
		"return":        {0, "$"},
		"destroy":       {0, "$"},
		"raise":         {1, `rank %d on localhost aborted the job with status 1: ValueError: no such sample: 17`},
		"exit":          {3, `rank %d on localhost exited with status 3`},
		"SystemExit":    {1, `rank %d on localhost exited with status 1`},
		"pending":       {3, `rank %d on localhost exited with status 3`},
		"handler":       {3, `rank %d on localhost exited with status 3`},
		"handler frees": {3, `rank %d on localhost exited with status 3`},
		"exit 0":        {1, left},
		"end":           {1, left},
		"destroy first": {1, left},
		"thread":        {1, left},
		"_exit":         {7, `rank %d on localhost exited with status 7`},
		"_exit 0":       {1, `rank %d on localhost ended with status 0 without closing its communicators`},
		"segv":          {139, `rank %d on localhost was killed by signal 11 \(SIGSEGV\)`},
		"abort":         {134, `rank %d on localhost was killed by signal 6 \(SIGABRT\)`},
		"SIGTERM":       {143, `rank %d on localhost was killed by signal 15 \(SIGTERM\)`},
		"SIGKILL":       {137, `rank %d on localhost was killed by signal 9 \(SIGKILL\)`},
		"SIGINT":        {130, `rank %d on localhost aborted the job with status 130: KeyboardInterrupt`},
	} {
		for who := range 2 {
			output, status := b.script(t, 2, nil, "endings.py", way, strconv.Itoa(who))
			blamed := strings.TrimPrefix(regexp.MustCompile(`(?m)^gompirun: rank .*`).FindString(output), "gompirun: ")
			if blame := "^" + strings.ReplaceAll(want.blame, "%d", strconv.Itoa(who)); status != want.status ||
				!regexp.MustCompile(blame).MatchString(blamed) {
				t.Errorf("rank %d, %s: status %d, want %d and %q:\n%s", who, way, status, want.status, blame, output)
			}
		}
	}
}

// Ranks that all send before they receive do not wait for each other forever.
func TestTorchRanksMaySendFirst(t *testing.T) {
	b := torchBed(t)
	for np := 2; np <= 4; np++ {
		output, status := b.script(t, np, nil, "messages.py")
		tell(t, np, "has all messages", output, status)
	}
	output, status := b.script(t, 2, []string{"-x", "GOMPI_TRANSPORT=tcp"}, "messages.py")
	tell(t, 2, "has all messages", output, status)
	output, status = b.script(t, 2, nil, "messages.py", "large")
	tell(t, 2, "has all messages", output, status)
}

func TestTorchsStoreEndsWithItsGroup(t *testing.T) {
	output, status := torchBed(t).script(t, 1, nil, "files.py", t.TempDir())
	tell(t, 1, "has dropped the stores", output, status)
}

func TestTorchTellsWhatWentWrong(t *testing.T) {
	b := torchBed(t)
	for _, name := range []string{"layouts.py", "dropped.py", "mismatch.py", "late.py", "store.py", "stores.py",
		"gone.py", "vain.py", "waits.py", "loaders.py", "interrupt.py", "handlers.py", "callbacks.py"} {
		output, status := b.script(t, 3, nil, name)
		tell(t, 3, "is told", output, status)
	}
}

// Exit functions that a program has registered before gompi_torch find its groups.
func TestTorchLeavesAfterTheProgramsLastFunctions(t *testing.T) {
	output, status := torchBed(t).script(t, 3, nil, "cleanup.py")
	tell(t, 3, "has saved 9", output, status)
}

// Who waits in init_process_group waits for its timeout at most, and names who does not come to the
// first.
func TestTorchNamesTheRankThatDoesNotCome(t *testing.T) {
	b := torchBed(t)
	for way, want := range map[string]string{"first": `Timed out waiting.*rank 1\b`,
		"again": "took longer than the limit, 3s"} {
		output, status := b.script(t, 3, []string{"-timeout", "45"}, "absent.py", way)
		told := regexp.MustCompile(`rank [02] is told: gompi: .*`+want).FindAllString(output, -1)
		if status != 124 || len(told) != 2 {
			t.Errorf("%s: status %d, want 124 and ranks 0 and 2 to be told %q:\n%s", way, status, want, output)
		}
	}
}

// Who aborts a group has the others told at once, whatever it does next. torch has abort since 2.6.
func TestTorchRanksHearOfAnAbort(t *testing.T) {
	b := torchBed(t)
	if _, status := b.Run(t, b.Python, "-c",
		"import sys, torch; sys.exit(not hasattr(torch.distributed.ProcessGroup, 'abort'))"); status != 0 {
		t.Skip("this torch has no ProcessGroup.abort")
	}
	fifo := filepath.Join(t.TempDir(), "told")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	output, status := b.script(t, 3, []string{"-timeout", "60"}, "aborted.py", fifo)
	tell(t, 3, "is told", output, status)
}

// torchrun blames the rank that failed, and not one that was told of it, which may come first.
func TestTorchrunBlamesTheRankThatFailed(t *testing.T) {
	b := torchBed(t)
	for _, way := range []string{"raise", "exit", "SIGKILL"} {
		output, status := b.torchrun(t, 2, "endings.py", way, "1")
		blamed := regexp.MustCompile(`Root Cause[^\0]*?rank +: (\d)`).FindStringSubmatch(output)
		if status != 1 || blamed == nil || blamed[1] != "1" {
			t.Errorf("%s: status %d, %q: want 1, and rank 1 as the cause:\n%s", way, status, blamed, output)
		}
	}
}

// A rank that is killed while a child of its lives has the others told as soon as without.
func TestTorchNoticesADeathInSpiteOfChildren(t *testing.T) {
	b := torchBed(t)
	output, status := b.script(t, 3, nil, "loaders.py", "orphans")
	if status != 137 || !strings.Contains(output, "rank 1 (host localhost) is lost") {
		t.Errorf("status %d, want 137 and that rank 1 is lost:\n%s", status, output)
	}
}

func TestTorchRunsScriptsAsTheyAre(t *testing.T) {
	b := torchBed(t)
	output, status := b.Run(t, b.Gompirun, "-torch-backend", "gompi", "-np", "2", "tests/nccl.py", "--lr", "0.1")
	tell(t, 2, `has \[2\.0, 2\.0\], \['--lr', '0\.1'\], (gompi|nccl)`, output, status)
	if n := strings.Count(output, `"nccl" wants a GPU, and there is none`); n != 1 {
		t.Errorf("%d lines say that there is no GPU, want 1:\n%s", n, output)
	}
	if _, status = b.Run(t, b.Python, "-c", "import sys, torch; sys.exit(torch.__version__ < '2')"); status == 0 {
		output, status = b.script(t, 2, nil, "gpus.py")
		tell(t, 2, `has \[2\.0, 2\.0\]`, output, status)
	}
	output, status = b.Run(t, b.Gompirun, "-torch-backend", "gompi", "-np", "2", "../../examples/pytorch/ddp.py",
		"--steps", "20")
	tell(t, 2, "all ranks agree", output, status)

	dir := t.TempDir()
	module := []byte("import sys, torch.distributed as d\nd.init_process_group('gloo')\nprint(f'rank {d.get_rank()} runs {sys.argv[1:]} by {d.get_backend()}')\n")
	if err := os.WriteFile(filepath.Join(dir, "mine.py"), module, 0o644); err != nil {
		t.Fatal(err)
	}
	output, status = b.Run(t, b.Gompirun, "-x", "PYTHONPATH="+dir, "-torch-backend", "gompi", "-np", "2", "-m",
		"mine", "-x", "1")
	tell(t, 2, `runs \['-x', '1'\] by g(omp|lo)`, output, status)
}

// Whatever backend a script asks for, it gets gompi, in every way that there is to say so.
func TestTorchScriptsGetGompiByAllNames(t *testing.T) {
	b := torchBed(t)
	const script, set = "tests/names.py", "GOMPI_TORCH_BACKEND=gompi"
	torchrun := []string{b.Python, "-m", "torch.distributed.run", "-r", "9:3", "-t", "9:3", "--standalone",
		"--nproc_per_node", "2"}
	ways := map[string][]string{
		"-torch-backend":          {b.Gompirun, "-np", "2", "-torch-backend", "gompi", script},
		"-m gompi_torch":          {b.Gompirun, "-np", "2", b.Python, "-m", "gompi_torch", script},
		"torchrun -m gompi_torch": append(torchrun, "-m", "gompi_torch", script),
	}
	if _, status := b.Run(t, b.Python, "-c", autoloads); status != 9 {
		ways["-torch-backend, no script"] = []string{b.Gompirun, "-np", "2", "-torch-backend", "gompi",
			b.Python, script}
		ways["the variable"] = []string{"env", set, b.Gompirun, "-np", "2", b.Python, script}
		ways["the variable, torchrun"] = append([]string{"env", set}, append(torchrun, script)...)
	}
	for way, argv := range ways {
		t.Run(way, func(t *testing.T) {
			output, status := b.Run(t, argv...)
			tell(t, 2, "has gompi by all names", output, status)
		})
	}
}

// No launcher of gompi's knows these ranks: torch does.
func TestTorchsRanksMeetByItsStore(t *testing.T) {
	b := torchBed(t)
	for _, way := range []string{"tcp", "env", "file", "store"} {
		output, status := b.Run(t, b.Python, "tests/meet.py", way, filepath.Join(t.TempDir(), "file"))
		tell(t, 2, "is there", output, status)
	}
	for name, second := range map[string][]string{"one host": nil,
		"two hosts": {"unshare", "--uts", "sh", "-c", `hostname other; exec "$0" "$@"`}} {
		if len(second) > 0 && exec.Command("unshare", "--uts", "true").Run() != nil {
			t.Log("left out: this user cannot make a host with another name")
			continue
		}
		output, status := b.twoNodes(t, second)
		if tell(t, 2, "is there", output, status); t.Failed() {
			t.Log(name)
		}
	}
}

// A rank that is killed before it has come is named, and rank 0, which has torch's store, may leave
// when a monitored_barrier is over.
func TestTorchsRanksOutliveThoseThatLeaveTheStore(t *testing.T) {
	b := torchBed(t)
	for way, np := range map[string]int{"killed": 2, "leaves": 3} {
		output, status := b.Run(t, b.Python, "tests/unmet.py", way, freePort(t))
		tell(t, np, "is told", output, status)
	}
}

// twoNodes runs torchrun for each of two nodes, each with a rank, the second by the command given.
func (b bed) twoNodes(t *testing.T, second []string) (output string, status int) {
	t.Helper()
	port := freePort(t)
	node := func(rank string) []string {
		return []string{b.Python, "-m", "torch.distributed.run", "-r", "9:3", "-t", "9:3", "--nnodes", "2",
			"--nproc_per_node", "1", "--node_rank", rank,
			"--master_addr", "127.0.0.1", "--master_port", port, "tests/meet.py"}
	}
	first := make(chan string, 1)
	go func() {
		out, _ := exec.CommandContext(t.Context(), "timeout", append([]string{"150"}, node("0")...)...).CombinedOutput()
		first <- string(out)
	}()
	output, status = b.Run(t, append(second, node("1")...)...)
	return <-first + output, status
}

// freePort is a port of this host that nobody listens at.
func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	return port
}

// fail.h says why.
func TestNoErrorIsWrittenToAStream(t *testing.T) {
	sources, _ := filepath.Glob("src/*")
	for _, path := range sources {
		text, err := os.ReadFile(path)
		if found := regexp.MustCompile(`TORCH_\w*CHECK\w*\(|c10::str\(|stringstream`).Find(text); found != nil ||
			err != nil {
			t.Errorf("%s has %q, %v: want fail of fail.h", path, found, err)
		}
	}
	if len(sources) == 0 {
		t.Error("no sources")
	}
}

func TestTorchRunsUnderTorchrun(t *testing.T) {
	b := torchBed(t)
	output, status := b.torchrun(t, 2, "store.py")
	tell(t, 2, "is told", output, status)
}

// A job that hangs in a collective is reported as that, with who is missing, whatever threads of
// gompi_torch wait for.
func TestTorchHangsNameWhoIsMissing(t *testing.T) {
	b := torchBed(t)
	for who := range 2 {
		output, status := b.script(t, 2, []string{"-timeout", "20"}, "hang.py", strconv.Itoa(who))
		want := fmt.Sprintf(`allreduce\(4 float32, sum\) number \d+: arrived: rank %d; missing: rank %d\n(?s:.*)rank %d is in allreduce\(4 float32, sum\) number \d+ at tests/hang.py:16 for`, 1-who, who, 1-who)
		if !regexp.MustCompile(want).MatchString(output) || strings.Contains(output, "probe(") || status != 124 {
			t.Errorf("rank %d hangs: status %d, want 124 and %q, and no probe:\n%s", who, status, want, output)
		}
	}
}

// -stats counts collectives at the lines of the script that call them, and -trace has them there.
func TestTorchCollectivesAreCountedAtTheirLines(t *testing.T) {
	b := torchBed(t)
	text, err := os.ReadFile("tests/counted.py")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "trace.json")
	output, status := b.script(t, 2, []string{"-stats", "-trace", file}, "counted.py")
	trace, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v:\n%s", err, output)
	}
	for mark, want := range map[string]struct {
		call  string
		times int
	}{"sync": {"allreduce", 10}, "async": {"allreduce", 6}, "backward": {"allreduce", 2}, "barrier": {"barrier", 2}} {
		line := 1 + strings.Count(strings.SplitAfter(string(text), "  # "+mark)[0], "\n")
		if at := fmt.Sprintf(`(?m)^%s +tests/counted\.py:%d +%d `, want.call, line, want.times); status != 0 ||
			!regexp.MustCompile(at).MatchString(output) {
			t.Errorf("status %d, want 0 and %q:\n%s", status, at, output)
		}
		call := regexp.MustCompile(fmt.Sprintf(`"name":"%s"[^}]*"at":"tests/counted\.py:%d"`, want.call, line))
		if n := len(call.FindAll(trace, -1)); n != want.times {
			t.Errorf("-trace has %d calls that match %q, want %d:\n%s", n, call, want.times, trace)
		}
	}
}
