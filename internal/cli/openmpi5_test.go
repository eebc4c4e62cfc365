package cli

import (
	"slices"
	"strings"
	"testing"
)

// One letter is Open MPI's flag and, with ranks after it, Intel MPI's.
func TestTheLetterSTakesRanksOnly(t *testing.T) {
	for line, want := range map[string]string{
		"-s all ./prog": "-stdin all ./prog",
		"-s 0,2 prog":   "-stdin 0,2 prog",
		"-s none prog":  "-stdin none prog",
		"-s ./prog all": "-preload-binary ./prog all",
		"-s -- 3":       "-preload-binary -- 3",
		"-s":            "-preload-binary",
	} {
		used := usedHabits{set: New("x")}
		i := slices.IndexFunc(openMPIHabits(), func(h Habit) bool { return slices.Contains(h.Names, "s") })
		got, err := used.take(openMPIHabits()[i], "s", "-s", "", false, strings.Fields(line)[1:])
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %v, want %s", line, got, err, want)
		}
	}
}

func TestTimesOfOpenMPI(t *testing.T) {
	for clock, want := range map[string]string{
		"9": "9", "70000": "70000", "90s": "90s", "1:05": "65", "1:00:00:01": "86401", "": "", "1:x": "",
		"1:2:3:4:5": "", "1:": "",
	} {
		if got, ok := clockSeconds(clock); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v, want %q", clock, got, ok, want)
		}
	}
}
