package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gompi/bench/internal/measure"
	"gompi/bench/internal/result"
	"gompi/internal/stress"
)

func TestBucketsHoldAllParametersFromTheLastOn(t *testing.T) {
	if got, want := buckets([]int{5, 7, 300000, 6_553_000, 600, 1000, 262_000}),
		[]int{262_000, 1600, 6_553_000, 300_012}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: the first at most 1 MiB, others 25 MiB", got, want)
	}
	if got, want := buckets([]int{10, 20_000_000, 30}), []int{30, 20_000_000, 10}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: a larger parameter has a bucket of its own", got, want)
	}
	for _, m := range measure.Models() {
		sum := 0
		for i, n := range buckets(m.Lengths) {
			sum += n
			if limit := map[bool]int{true: firstBucket, false: nextBucket}[i == 0]; n > limit &&
				!slices.Contains(m.Lengths, n) {
				t.Errorf("%s: bucket %d has %d numbers: want at most %d", m.Name, i, n, limit)
			}
		}
		if sum != m.Size() {
			t.Errorf("%s: buckets of %d numbers in all, want %d", m.Name, sum, m.Size())
		}
	}
}

func TestPeersReadTheProfilesThatGompiHas(t *testing.T) {
	dir := t.TempDir()
	recommender := measure.Models()[slices.Index(profileNames(), "recommender")]
	if err := writeProfiles(dir, []measure.Model{recommender}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(read(t, profilesIn(dir)), "\n")
	slices.Sort(lines)
	if want := []string{"", "buckets ddp-recommender 333 2699756",
		"tensors ddp-recommender 35380 2664376 332 1"}; !slices.Equal(lines, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
}

// printedLosses are losses as programs print them, with the loss of one step changed by a factor.
func printedLosses(step int, factor float64) string {
	var b strings.Builder
	b.WriteString("a line that is none\n")
	for i := 1; i <= lossSteps; i++ {
		x := 2.5 / float64(i)
		if i == step {
			x *= factor
		}
		fmt.Fprintf(&b, "loss %d %.9g\n", i, x)
	}
	return b.String()
}

func TestLossesThatDifferAreRefusedWithBoth(t *testing.T) {
	mine, err := parseLosses(printedLosses(0, 1))
	if err != nil || len(mine) != lossSteps || mine[1] != 1.25 {
		t.Fatalf("got %v, error %v", mine, err)
	}
	for _, tt := range []struct {
		factor float64
		want   string
	}{
		{1 + 0.9e-4, ""},
		{1 + 1.1e-4, "in step 20 its loss is 0.1250137"},
		{1 - 1.1e-4, "gompi's 0.125:"},
		{-1, "its loss is -0.125, gompi's 0.125"},
	} {
		theirs, err := parseLosses(printedLosses(lossSteps, tt.factor))
		if err != nil {
			t.Fatal(err)
		}
		if err = agree(mine, theirs); (err == nil) != (tt.want == "") ||
			err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("times %v: %v, want %q", tt.factor, err, tt.want)
		}
	}
}

func TestLossesThatAreNoneAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"": "0 losses: want 20",
		strings.ReplaceAll(printedLosses(0, 1), "loss 7", "lost 7"): `line "loss 8 0.3125": want loss 7 and its value`,
		strings.ReplaceAll(printedLosses(0, 1), "1.25\n", "nan\n"):  `loss 2 is "nan": want a finite number`,
		printedLosses(0, 1) + "loss 21 0\n":                         "21 losses: want 20",
	} {
		if _, err := parseLosses(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
}

// trained is a gompirun that starts nothing: it prints the output of the named program. Its PyTorch
// is another program, whose losses over gloo are not gompi's.
func trained(t *testing.T) (gompirun, python, steps string) {
	gompirun = script(t, "gompirun", `
np=$2 first=2.5 ms=8000
for op; do :; done
case "$*" in *"backend gompi"*) ms=24000;; *"backend gloo"*) first=2.6 ms=60000;; esac
case "$*" in
*-losses*) echo "loss 1 $first"; for i in $(seq 2 20); do echo "loss $i 2"; done; exit;;
esac
echo `+result.Header+`
case $op in
ddp-*) echo x,$op,$np,4,$ms,1,1,5,0,0,0;;
*) for part in step forward backward exposed optimiser comm; do echo x,$op/$part,$np,4,$ms,1,1,5,0,0,0; ms=$((ms / 2)); done;;
esac
`)
	python = script(t, "python", "case \"$2\" in *__version__*) echo 1.13.1;; *maps*) echo libfast.so;; esac\n")
	return gompirun, python, script(t, "steps", "")
}

func TestATrainingSaysWhatIsLostAndRefused(t *testing.T) {
	gompirun, python, steps := trained(t)
	csv, html := filepath.Join(t.TempDir(), "raw.csv"), filepath.Join(t.TempDir(), "all.html")
	out := called(t, 0, "ddp", "-gompirun", gompirun, "-steps", steps, "-python", python, "-venvs", "/nowhere",
		"-np", "1,2", "-rounds", "2", "-peers", "torch-gompi,gloo,openmpi", "-csv", csv, "-html", html,
		"resnet50", "mlp")
	has(t, out, `- PyTorch 1.13.1 computes with libfast.so, one thread for each rank\n`,
		"- gompi : `"+gompirun+` -np 2 .* run -format csv -budget 100ms ddp-resnet50`+"`\n",
		` -np 2 -bind-to none `+python+` .*ddpsteps.py --backend gloo -in .* -bucket 26214400 mlp`,
		`\| resnet50 \| +1 \| +161 \| 102.2 \| +8.00 \| +24.0 \| +- \| +60.0 \| +- \|\n`,
		`\| resnet50 \| +2 \| +161 \| 102.2 \| +8.00 \| +24.0 \| +3.00 \| +60.0 \| +7.50 \|\n`,
		`\| mlp +\| 2 +\| gompi +\| +8.00 \| +4.00 \| +2.00 \| +1.00 \| +0.50 \| +0.25 \| +-300 % \| +\|`,
		`\| mlp +\| 2 +\| torch-gompi \| +24.0 \| +12.0 \| +6.00 \| +3.00 \| +1.50 \| +0.75 \| +-300 % \| +3.00 \|`,
		`\| mlp +\| 2 +\| gloo +\| missing \| .* missing \|`, `- openmpi: not installed`,
		`- gloo, mlp, np=2: refused: in step 1 its loss is 2.6, gompi's 2.5: want them equal to 0.0001, relatively\n`)
	if rows := read(t, csv); strings.Count(rows, ",gompi,ddp-resnet50,2,") != 2 || strings.Contains(rows, "gloo,mlp") {
		t.Errorf("rows:\n%s\nwant two rounds of gompi, and no step of gloo", rows)
	}
	has(t, read(t, html), "a step of mlp, 2 ranks", "averaging gradients, 2 ranks")
}

// TestTrainingIsCompared is a real comparison, as small as it can be.
func TestTrainingIsCompared(t *testing.T) {
	stress.Long(t, "builds gompi's programs, compiles and starts MPI programs and PyTorch")
	dir := built(t)
	out := called(t, 0, "ddp", "-gompirun", filepath.Join(dir, "gompirun"), "-steps", filepath.Join(dir, "steps"),
		"-peers", "gloo,torch-unsent,openmpi-debian", "-np", "2", "-rounds", "1", "-budget", "1ms",
		"recommender", "cnn")
	if strings.Contains(out, "Runs that failed") {
		t.Fatal(out)
	}
	if strings.Contains(out, "Not here") {
		t.Skip("needs PyTorch and Open MPI (make torch ONLY=build, and packages openmpi-bin and libopenmpi-dev)")
	}
	has(t, out, `\| recommender \| +2 \| +4 \| 10.8 \| +[0-9.]+ \| +[0-9.]+ \|`,
		`\| cnn +\| 2 +\| gloo +\| +[0-9.]+ \|`)
}
