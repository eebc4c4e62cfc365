//go:build linux

package pytorch

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	gompitorch "gompi/comm/gompi_torch"
	"gompi/internal/stress"
)

// pageLines returns the lines of docs/seeds.md that run one of the page's programs on this machine,
// in order and without their comments, from blocks and from the text.
func pageLines(t *testing.T) (lines []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/seeds.md")
	if err != nil {
		t.Fatal(err)
	}
	ours := regexp.MustCompile(`^(toy|cnn|movielens) |^(gompirun|torchrun) .*\b(toy|cnn|movielens)(\.py)? `)
	for _, m := range regexp.MustCompile("(?m)^    (.+)$|`([^`]+)`").FindAllStringSubmatch(string(page), -1) {
		line, _, _ := strings.Cut(m[1]+m[2], " #")
		if line = strings.TrimSpace(line); ours.MatchString(line) && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// wantsTorch reports whether a line runs a script, and whether over gompi.
func wantsTorch(line string) (script, gompi bool) {
	return strings.Contains(line, ".py "), strings.Contains(line, "-torch-backend gompi")
}

// Fewer makes the trainings of the page's lines short.
var fewer = strings.NewReplacer("cnn -data mnist -gen", "cnn -data mnist -gen -samples 100",
	"movielens -data ml-latest-small -gen", "movielens -data ml-latest-small -gen -ratings 1500",
	"toy 1000 1000", "toy 100 100")

// A desk is a folder that looks to the page's lines as the top of a checkout does. The lines run in
// it one after the other.
type desk struct {
	dir  string
	path string // PATH: the programs, and the Python that is to run scripts
}

func newDesk(t *testing.T, python string) desk {
	t.Helper()
	for _, pkg := range []string{"mpirun/gompirun", "examples/toy", "examples/cnn", "examples/movielens"} {
		build(t, pkg)
	}
	d := desk{dir: t.TempDir(), path: programs.dir + ":" + python + ":" + os.Getenv("PATH")}
	examples, err := filepath.Abs("..")
	if err == nil {
		err = os.Symlink(examples, filepath.Join(d.dir, "examples"))
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(d.dir, "hosts"), []byte("localhost\n127.0.0.2\n"), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// types runs a line, which has to end well within two minutes.
func (d desk) types(t *testing.T, line string) {
	t.Helper()
	want := regexp.MustCompile(`epoch (\d+)/(\d+): |no epochs are left`)
	if strings.HasSuffix(line, "-gen") {
		want = regexp.MustCompile("written to the folder")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", fewer.Replace(line))
	cmd.Dir, cmd.Env = d.dir, append(os.Environ(), "PATH="+d.path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 15 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil || !want.Match(out) {
		t.Errorf("%s\n%v, want a line like %q:\n%s", line, err, want, out)
	}
}

// The lines of docs/seeds.md run as they stand there.
func TestLinesOfTheSeedsPageRun(t *testing.T) {
	stress.Long(t, "builds and starts programs")
	d := newDesk(t, cmp.Or(findTorch(), "/usr/bin"))
	count := 0
	for _, line := range pageLines(t) {
		script, gompi := wantsTorch(line)
		if gompi {
			continue // TestTorchLineOfTheSeedsPageRuns
		}
		count++
		t.Run(line, func(t *testing.T) {
			if script && findTorch() == "" {
				t.Skip("no python3 with torch: apt-get install python3-torch")
			}
			if _, err := exec.LookPath("torchrun"); strings.HasPrefix(line, "torchrun ") && err != nil {
				t.Skip("no torchrun")
			}
			d.types(t, line)
		})
	}
	if count < 9 {
		t.Errorf("the page has %d lines, want 9 or more: %q", count, pageLines(t))
	}
}

func TestTorchLineOfTheSeedsPageRuns(t *testing.T) {
	d := newDesk(t, filepath.Dir(gompitorch.NewBed(t).Python))
	count := 0
	for _, line := range pageLines(t) {
		if _, gompi := wantsTorch(line); gompi || strings.HasSuffix(line, "-gen") {
			count++
			d.types(t, line)
		}
	}
	if count != 3 {
		t.Errorf("%d lines, want two that write data and one that has gompi for a backend: %q", count, pageLines(t))
	}
}
