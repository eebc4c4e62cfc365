//go:build linux

package pytorch

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gompitorch "gompi/comm/gompi_torch"
)

// A workload is a training that has a Go program and a script, which read the same files.
type workload struct {
	name  string
	files []string // flags of the program that write the files
	flags []string // of the script
	last  string   // the pattern of the number that the last epoch ends with
}

var workloads = []workload{
	{"toy", nil, nil, `squared error ([\d.]+)`},
	{"cnn", []string{"-gen", "-samples", "200"}, []string{"--lr", "0.01"}, `loss ([\d.]+)`},
	{"movielens", []string{"-gen", "-ratings", "2000"}, []string{"--width", "8"}, `held out: RMSE ([\d.]+)`},
}

// generate has the Go program write its files and returns the script with its flags.
func (w workload) generate(t *testing.T) []string {
	t.Helper()
	script := append([]string{w.name + ".py", "--batch", "64", "--batch-per", "all"}, w.flags...)
	if w.files == nil {
		return script
	}
	dir := filepath.Join(t.TempDir(), "data")
	program := build(t, "examples/"+w.name)
	if out, err := exec.Command(program, append([]string{"-data", dir}, w.files...)...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", w.name, err, out)
	}
	return append(script, "--data", dir)
}

// result returns the number of the last epoch that a script has printed.
func (w workload) result(t *testing.T, epoch, out string) float64 {
	t.Helper()
	m := regexp.MustCompile(`epoch ` + epoch + `:.*?` + w.last).FindStringSubmatch(out)
	if m == nil || strings.Count(out, "all ranks agree") != 1 {
		t.Fatalf("%s: no epoch %s, or ranks that do not agree:\n%s", w.name, epoch, out)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Each script learns, and a run that stops after two epochs and goes on with another number of
// ranks ends where one that does not stop does. One process does all runs of one rank.
func TestWorkloadsGoOnWithAnyNumberOfRanks(t *testing.T) {
	run := setUp(t)
	var scripts [][]string
	var dirs []string
	var after2 []float64
	for _, w := range workloads {
		script, dir := w.generate(t), t.TempDir()
		on2 := append([]string{"-oversubscribe", "-np", "2"}, script...)
		out := run("gompirun", append(on2, "2", "--snapshot", filepath.Join(dir, "snapshot"))...)
		after2, dirs = append(after2, w.result(t, "2/2", out)), append(dirs, dir)
		for _, snapshot := range []string{"snapshot", "whole"} {
			scripts = append(scripts, append(slices.Clip(script), "4", "--snapshot", filepath.Join(dir, snapshot)))
		}
	}
	list, err := json.Marshal(scripts)
	if err != nil {
		t.Fatal(err)
	}
	outs := strings.Split(run("gompirun", "-np", "1", "testdata/in_turn.py", string(list)), "runs ")[1:]
	if len(outs) != len(scripts) {
		t.Fatalf("%d scripts ran, want %d:\n%s", len(outs), len(scripts), outs)
	}
	for i, w := range workloads {
		if on := "going on from " + filepath.Join(dirs[i], "snapshot") +
			", saved after epoch 2\n"; !strings.Contains(outs[2*i], on) {
			t.Errorf("it does not go on:\n%s", outs[2*i])
		}
		first, got, want := after2[i], w.result(t, "4/4", outs[2*i]), w.result(t, "4/4", outs[2*i+1])
		if math.Abs(got-want) > 1e-3*want || !(want < first) {
			t.Errorf("%s: 2 ranks end with %v after 2 epochs, then one rank with %v after 4, one rank alone with %v",
				w.name, first, got, want)
		}
		if left, _ := filepath.Glob(filepath.Join(dirs[i], "*.new")); len(left) > 0 {
			t.Errorf("%v is left", left)
		}
	}
}

// An error on one rank ends all with one reason, in a script whose ranks are its forks.
func TestWhatIsWrongOnOneRankEndsAll(t *testing.T) {
	run := setUp(t)
	if out := run("python3", "job_test.py"); !strings.HasSuffix(out, "all ranks are told\n") {
		t.Errorf("it says\n%s", out)
	}
}

func TestAWorkloadRunsUnderTorchrun(t *testing.T) {
	run := setUp(t)
	if _, err := exec.LookPath("torchrun"); err != nil {
		t.Skip("no torchrun")
	}
	w := workloads[0]
	script := append(w.generate(t), "2")
	want := w.result(t, "2/2", run("gompirun", append([]string{"-np", "2"}, script...)...))
	apart := []string{"-r", "9:3", "-t", "9:3", "--rdzv_backend=c10d", "--rdzv_endpoint=localhost:0",
		"--nproc_per_node=2"}
	if got := w.result(t, "2/2", run("torchrun", append(apart, script...)...)); math.Abs(got-want) > 1e-3*want {
		t.Errorf("under torchrun it ends with %v, under gompirun with %v", got, want)
	}
}

// --batch 100 is for each of two hosts, not for each of their three ranks; the best model is kept.
func TestScriptsCountNodesAndKeepTheBest(t *testing.T) {
	run := setUp(t)
	dir := t.TempDir()
	w := workloads[2]
	script := append(w.generate(t), "--batch-per", "node", "--batch", "100", "3", "1", "--keep-best", "--snapshot",
		filepath.Join(dir, "s"))
	out := run("gompirun", append(append([]string{"-oversubscribe", "-np", "3"}, gompitorch.TwoHosts(t)...),
		script...)...)
	if !strings.Contains(out, "run: steps of 200 samples of all 3 ranks, --batch 100 per node") {
		t.Errorf("want 200 samples for two hosts:\n%s", out)
	}
	if _, err := os.Stat(filepath.Join(dir, "s.best")); err != nil {
		t.Error(err)
	}
	best := math.Inf(1)
	for _, m := range regexp.MustCompile(`held out: RMSE ([\d.]+);`).FindAllStringSubmatch(out, -1) {
		v, _ := strconv.ParseFloat(m[1], 64)
		best = min(best, v)
	}
	out = run("gompirun", append(append([]string{"-np", "1"}, script...), "--eval", "--resume",
		filepath.Join(dir, "s.best"))...)
	if m := regexp.MustCompile(`held out: RMSE ([\d.]+)\n`).FindStringSubmatch(out); m == nil ||
		m[1] != strconv.FormatFloat(best, 'f', 4, 64) {
		t.Errorf("the best model has %v, want %.4f:\n%s", m, best, out)
	}
}

func TestTorchWorkloadsTrainAsWithGloo(t *testing.T) {
	b := gompitorch.NewBed(t)
	for _, w := range workloads {
		script := append(w.generate(t), "2")
		script[0] = filepath.Join(".", script[0])
		var results []float64
		argv := []string{b.Gompirun, "-oversubscribe", "-np", "2"}
		for _, over := range []struct {
			run   func(*testing.T, ...string) (string, int)
			flags []string
		}{{b.RunGloo, nil}, {b.Run, []string{"-x", "GOMPI_LOG=info", "-torch-backend", "gompi"}}} {
			output, status := over.run(t, slices.Concat(argv, over.flags, script)...)
			if status != 0 || strings.Contains(output, "msg=carried") != (over.flags != nil) { // only gompi prints this
				t.Fatalf("%s %v: status %d\n%s", w.name, over.flags, status, output)
			}
			results = append(results, w.result(t, "2/2", output))
		}
		if math.Abs(results[0]-results[1]) > 1e-3*results[0] {
			t.Errorf("%s ends with %v over gloo, with %v over gompi", w.name, results[0], results[1])
		}
	}
}
