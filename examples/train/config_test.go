package main

import (
	"bytes"
	"errors"
	"flag"
	"strings"
	"testing"
)

func TestNumbersAreEpochsAndSaveEvery(t *testing.T) {
	for _, tc := range []struct {
		args             string
		epochs, save     int
		steps            int
		overlap, resumes bool
	}{
		{"", 0, 0, defaultSteps, true, true},
		{"-steps 60", 0, 0, 60, true, true},
		{"50", 50, 0, 0, true, true},
		{"50 10", 50, 10, 0, true, true},
		{"-snapshot f 50 10", 50, 10, 0, true, true},
		{"50 10 -snapshot f", 50, 10, 0, true, true},
		{"50 -snapshot f 10 -steps 7", 50, 10, 7, true, true},
		{"--epochs=3 --overlap=false -resume never", 3, 0, 0, false, false},
	} {
		cfg, err := parse(strings.Fields(tc.args), nil)
		if err != nil {
			t.Errorf("%q: %v", tc.args, err)
			continue
		}
		if cfg.epochs != tc.epochs || cfg.saveEvery != tc.save || cfg.steps != tc.steps ||
			cfg.overlap != tc.overlap || cfg.resume != tc.resumes {
			t.Errorf("%q gives %+v", tc.args, cfg)
		}
	}
}

func TestASnapshotThatIsNeededHasAName(t *testing.T) {
	for args, want := range map[string]string{
		"": "", "50": "", "50 10": defaultSnapshot, "-eval": defaultSnapshot, "-save-every 5": defaultSnapshot,
		"50 10 -snapshot f": "f",
	} {
		if cfg, err := parse(strings.Fields(args), nil); err != nil || cfg.snapshot != want {
			t.Errorf("%q: snapshot %q, error %v; want %q", args, cfg.snapshot, err, want)
		}
	}
}

func TestLearningRateFollowsTheBatchIfAsked(t *testing.T) {
	for args, want := range map[string]float64{
		"-batch 4096 -lr 0.5": 0.5, "-batch 4096 -lr 0.5 -scale-lr linear": 2, "-batch 4096 -lr 0.5 -scale-lr sqrt": 1,
		"-batch 256 -lr 1 -scale-lr linear": 0.25, "-lr 0.5 -scale-lr linear": 0.5,
	} {
		if cfg, err := parse(strings.Fields(args), nil); err != nil || cfg.peakRate() != want {
			t.Errorf("%q: learning rate %v, error %v; want %v", args, cfg.peakRate(), err, want)
		}
	}
}

func TestArgumentsThatMakeNoSenseAreQuoted(t *testing.T) {
	for args, want := range map[string]string{
		"-nosuch":            "-nosuch",
		"fifty":              `"fifty"`,
		"1 2 three":          `"three"`,
		"-batch 0":           "-batch 0: want at least 1",
		"-steps -5":          "-steps -5",
		"-lr 0":              "-lr 0",
		"-lr NaN":            "-lr NaN",
		"-lr Inf":            "-lr +Inf: want a positive, finite number",
		"-clip-norm Inf":     "-clip-norm +Inf: want a positive, finite number",
		"-resume perhaps":    `"perhaps"`,
		"-epoch-samples -1":  "-epoch-samples -1",
		"-print-every 0":     "-print-every 0",
		"-accumulate 0":      "-accumulate 0",
		"-device gpu":        `-device "gpu": want host or cuda`,
		"-save-every -1 -10": "-10",
		"-eval-every -1":     "-eval-every -1: want at least 0",
		"-scale-lr cubic":    `-scale-lr "cubic": want none, linear or sqrt`,
		"-clip-norm -1":      "-clip-norm -1: want a positive, finite number",
		"-max-time -1s":      "-max-time -1s: want a duration such as 30s",
		"-keep-best":         "-keep-best without -eval-every: want both",

		"-trace f -device cuda":        "-trace with -device cuda: want -device host",
		"-clip-norm 1 -device cuda":    "-clip-norm with -device cuda: want -device host",
		"-hook bf16 -device cuda":      "-hook with -device cuda: want -device host",
		"-exact 8 -device cuda":        "-exact with -device cuda: want -device host",
		"-hook fp8":                    `-hook "fp8": want one of [none fp16 bf16 powersgd topk]`,
		"-exact -1":                    "-exact -1: want at least 0",
		"-exact 8 -hook bf16":          "-exact with -hook: want one of them",
		"-recover maybe":               `-recover "maybe": want no, shrink or restore`,
		"-device cuda -recover shrink": "-recover shrink with -device cuda: want -device host",
		"-trace f -recover restore":    "-recover restore with -trace: want one of them",
		"-recover shrink -max-time 1s": "-max-time with -recover shrink: want one of them",
		"-exact 8 -accumulate 2":       "-exact with -accumulate: want one of them",
	} {
		if _, err := parse(strings.Fields(args), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %s", args, err, want)
		}
	}
}

func TestHelpNamesEveryFlag(t *testing.T) {
	var help bytes.Buffer
	if _, err := parse([]string{"-h"}, &help); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("error is %v", err)
	}
	for _, name := range []string{"usage:", "-epochs", "-steps", "-batch", "-lr", "-seed", "-save-every", "-snapshot",
		"-csv", "-plot", "-overlap", "-eval-every", "-keep-best", "-clip-norm", "-scale-lr", "-trace", "-hook",
		"-exact", "-recover"} {
		if !strings.Contains(help.String(), name) {
			t.Errorf("help lacks %s:\n%s", name, help.String())
		}
	}
}
