//go:build linux

package mpirun

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gompi/internal/stress"
	"gompi/mpirun/internal/testbed"
)

// TestSeedsOfSlurmRun runs the batch file of seed 002, and its line with
// --dist-file, in a real Slurm: nothing but the word srun is another.
func TestSeedsOfSlurmRun(t *testing.T) {
	stress.Long(t, "importing torch takes seconds")
	_, path := torchScript(t)
	t.Parallel() // it waits most of the time
	bed := testbed.NewSlurm(t, 4)
	dir := workplace(t, "main.py")
	for _, name := range []string{"main.py", "pytorch_slurm.py", "002.sbatch"} {
		text, err := os.ReadFile("testdata/seeds/" + name)
		if err == nil {
			text = regexp.MustCompile(`(?m)^srun `).ReplaceAll(text, []byte("gompirun "))
			err = os.WriteFile(filepath.Join(dir, name), text, 0o777)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"HOME=" + dir, "PATH=" + dir + ":" + path}

	t.Run("sbatch", func(t *testing.T) {
		// The script's requests to a cluster are met, except for processors, memory and folder.
		out := submit(t, bed, env, dir, "--cpus-per-task=4", "--mem=0", "--chdir="+dir, dir+"/002.sbatch")
		var want []string
		for r := range 4 {
			want = append(want, fmt.Sprintf("rank %d of 4: weights are alike, --net resnet18 --lr 1e-3 --epochs 50 --other_args", r))
		}
		wantLines(t, out, `(?m)^rank .*$`, want)
		if !strings.Contains(out, "NODELIST=n[1-4]\nMASTER_ADDR=n1\n") ||
			!regexp.MustCompile(`gompirun: replaced for the ranks: MASTER_ADDR=n1 by \S+, MASTER_PORT=12340 by \d+ `).MatchString(out) {
			t.Errorf("not said: what the script exports, and what became of it:\n%s", out)
		}
	})
	t.Run("dist-file", func(t *testing.T) {
		cmd := bed.Command("salloc", "-Q", "-N2", "-p", "gpu", "--gres", "gpu:2", "-w", "n1,n2",
			"gompirun", "-nproc-per-node", "2", "pytorch_slurm.py", "--dist-backend", "nccl",
			"--multiprocessing-distributed", "--dist-file", "dist_file")
		cmd.Dir, cmd.Env = dir, append(cmd.Env, env...)
		status, out, output := finish(t, cmd)
		if status != 0 {
			t.Fatalf("status %d\n%s", status, strings.Join(output, "\n"))
		}
		wantLines(t, out, `(?m)^rank .*$`, []string{
			"rank 0 of 4 on n1: the sum is 10", "rank 1 of 4 on n1: the sum is 10", "rank 2 of 4 on n2: the sum is 10",
			"rank 3 of 4 on n2: the sum is 10",
		})
	})
}

// wantLines wants that the lines of a text that match a pattern are these, in any
// order.
func wantLines(t *testing.T, text, pattern string, want []string) {
	t.Helper()
	got := regexp.MustCompile(pattern).FindAllString(text, -1)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q\n%s", got, want, text)
	}
}
