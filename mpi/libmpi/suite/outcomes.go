package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// readOutcomes reads the table of an earlier run, if any.
func readOutcomes(file string) (map[string]outcome, error) {
	all := map[string]outcome{}
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return all, nil
	}
	for _, l := range strings.Split(string(text), "\n") {
		if f := strings.Split(l, "\t"); len(f) == 6 {
			o := outcome{face: f[0], dir: f[1], text: f[2], verdict: verdict(f[3]), first: f[5]}
			o.seconds, _ = strconv.ParseFloat(f[4], 64)
			all[o.key()] = o
		}
	}
	return all, err
}

func writeOutcomes(file string, all map[string]outcome) error {
	var text []string
	for _, o := range all {
		text = append(text, fmt.Sprintf("%s\t%s\t%s\t%s\t%.1f\t%s\n", o.face, o.dir, o.text, o.verdict,
			o.seconds, o.first))
	}
	slices.Sort(text)
	return os.WriteFile(file, []byte(strings.Join(text, "")), 0o644)
}

// summarize prints how many of the lines that ran passed, for each face and directory.
func summarize(w io.Writer, ran []run, all map[string]outcome) {
	count := map[string]int{}
	var dirs []string
	for _, r := range ran {
		o := all[r.key()]
		if !slices.Contains(dirs, o.dir) {
			dirs = append(dirs, o.dir)
		}
		for _, key := range []string{o.dir, "all"} {
			count[o.face+key]++
			count[o.face+key+string(o.verdict)]++
		}
	}
	fmt.Fprintf(w, "%-8s %-13s %6s %6s %6s %6s %9s %8s\n", "face", "dir", "lines", "built", passed, failed,
		timedOut, leftOut)
	for _, face := range []string{"openmpi", "mpich", "abi"} {
		for _, dir := range append(dirs, "all") {
			n := func(v verdict) int { return count[face+dir+string(v)] }
			if lines := count[face+dir]; lines > 0 {
				fmt.Fprintf(w, "%-8s %-13s %6d %6d %6d %6d %9d %8d\n", face, dir, lines, lines-n(notBuilt), n(passed),
					n(failed), n(timedOut), n(leftOut))
			}
		}
	}
}

// compare returns an error if a run passed or failed against the list of known lines.
func compare(ran []run, all map[string]outcome, known knownLines) error {
	if known == nil {
		return nil
	}
	wrong := 0
	for _, r := range ran {
		o, why := all[r.key()], known.why(r)
		switch {
		case o.verdict == leftOut || known.byChance(r) || (o.verdict == passed) == (why == ""):
			continue
		case o.verdict == passed:
			fmt.Printf("%s passes, and is listed: %s\n", r.key(), why)
		default:
			fmt.Printf("%s %s, and is not listed: %s\n", r.key(), o.verdict, o.first)
		}
		wrong++
	}
	if wrong > 0 {
		return fmt.Errorf("%d results differ from the list of known lines", wrong)
	}
	return nil
}

// knownLines are why lines do not pass, by face (or "all") and line, by "once" how some have failed
// that pass now, and by "chance" why some pass or not.
type knownLines map[string]string

func (k knownLines) why(r run) string {
	if why := k["all "+r.name()]; why != "" {
		return why
	}
	return k[r.face+" "+r.name()]
}

func (k knownLines) byChance(r run) bool { return k["chance "+r.name()] != "" }

func (k knownLines) failedOnce(r run) bool { return k["once "+r.name()] != "" }

// crossSection returns every nth of the runs that are to pass in little memory, and all lines
// that have failed once. Programs in Fortran exist three times, so only a sixth as many are
// taken.
func crossSection(all []run, n int, known knownLines) (some []run) {
	count := map[int]int{}
	for _, r := range all {
		if known.why(r) != "" || known.byChance(r) || r.memory > 1 {
			continue
		}
		each := n
		if language(r.dir) != "" {
			each = 6 * n
		}
		if count[each]%each == 0 || known.failedOnce(r) {
			some = append(some, r)
		}
		count[each]++
	}
	return some
}

// readKnown reads a list of known lines, or nothing where file is empty.
func readKnown(file string) (knownLines, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	known, err := parseKnown(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return known, nil
}

// parseKnown reads lines "FACE DIRECTORY/LINE: why".
func parseKnown(text string) (knownLines, error) {
	known := knownLines{}
	for i, l := range strings.Split(text, "\n") {
		if l = strings.TrimSpace(l); l == "" || l[0] == '#' {
			continue
		}
		key, why, ok := strings.Cut(l, ": ")
		face, _, _ := strings.Cut(key, " ")
		if !ok || why == "" || !slices.Contains([]string{"all", "openmpi", "mpich", "abi", "once", "chance"}, face) {
			return nil, fmt.Errorf("line %d is %q: want FACE DIRECTORY/LINE: why, with FACE openmpi, mpich, abi, all, once or chance", i+1, l)
		}
		known[key] = why
	}
	return known, nil
}
