// Testreport reads what `go test -json` writes and prints what `go test` would: a line for
// each package, and the output of what failed. In the end it lists the tests that were
// skipped, with their reasons.
//
//	go test -json ./... | testreport [-record FILE]
//
// FILE gets a line for each test that ran, "ran PACKAGE TEST", or was skipped, "skip PACKAGE
// TEST REASON". The exit status is 1 if a test failed, or the input ends before the
// packages do.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	record := flag.String("record", "", "append what ran and what was skipped to this file")
	flag.Parse()
	r := newReport(os.Stdout)
	err := r.read(os.Stdin)
	r.listSkipped()
	if err == nil && *record != "" {
		err = r.append(*record)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "testreport: %v\n", err)
	}
	if err != nil || r.failed {
		os.Exit(1)
	}
}

// An event is one line of `go test -json`; see `go doc test2json`.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// A test is one test, or a package, that has not ended.
type test struct{ pkg, name string }

// A report is what has been read so far.
type report struct {
	out     io.Writer
	output  map[test][]string // what those have said that may yet fail
	open    map[string]bool   // packages that have not ended
	ran     []test
	skipped []skip
	failed  bool
}

// A skip is a test that was skipped.
type skip struct {
	test
	why string
}

func newReport(out io.Writer) *report {
	return &report{out: out, output: map[test][]string{}, open: map[string]bool{}}
}

// read reads all events. Lines that are none, as those of a compiler, are handed on.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) == nil {
				r.take(e)
			} else {
				fmt.Fprint(r.out, line)
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	for pkg := range r.open {
		return fmt.Errorf("the output ends amid %s", pkg)
	}
	return nil
}

func (r *report) take(e event) {
	t := test{e.Package, e.Test}
	switch e.Action {
	case "start":
		r.open[e.Package] = true
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "build-fail":
		r.failed = true
	case "output":
		if !isFrame(e.Output) {
			r.output[t] = append(r.output[t], e.Output)
		}
	case "skip":
		if e.Test != "" {
			r.skipped = append(r.skipped, skip{t, reason(r.output[t])})
		}
		r.end(t)
	case "fail":
		r.failed = true
		if e.Test != "" {
			r.print(t)
			r.ran = append(r.ran, t)
		}
		r.end(t)
	case "pass":
		if e.Test != "" {
			r.ran = append(r.ran, t)
		}
		r.end(t)
	}
}

// end forgets what a test has said. Of a package it prints the last line, or all if it
// failed, for then it may be a panic that belongs to no test; the tests that were under way
// have more to say.
func (r *report) end(t test) {
	if t.name == "" {
		for other := range r.output {
			if other.pkg == t.pkg && other.name != "" {
				r.print(other)
				delete(r.output, other)
			}
		}
		r.print(t)
		delete(r.open, t.pkg)
	}
	delete(r.output, t)
}

// print prints what a test has said after the line with its outcome, as go test does.
func (r *report) print(t test) {
	lines := r.output[t]
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "--- FAIL") {
			fmt.Fprint(r.out, line)
			lines = append(lines[:i:i], lines[i+1:]...)
			break
		}
	}
	for _, line := range lines {
		fmt.Fprint(r.out, line)
	}
}

// isFrame reports whether a line of output only tells that a test begins or goes on, or
// that a package passed, which its last line tells, too.
func isFrame(line string) bool {
	return strings.HasPrefix(line, "=== ") || line == "PASS\n"
}

// reason returns what a test said when it was skipped: "file.go:12: needs root".
func reason(output []string) string {
	var words []string
	for _, line := range output {
		if !strings.HasPrefix(strings.TrimLeft(line, " "), "--- SKIP") {
			words = append(words, strings.Fields(line)...)
		}
	}
	return strings.Join(words, " ")
}

// listSkipped prints the tests that were skipped.
func (r *report) listSkipped() {
	if len(r.skipped) == 0 {
		return
	}
	fmt.Fprintf(r.out, "skipped tests, %d:\n", len(r.skipped))
	for _, s := range r.skipped {
		fmt.Fprintf(r.out, "  %s %s: %s\n", s.pkg, s.name, s.why)
	}
}

// append adds what is known to the record at path.
func (r *report) append(path string) error {
	var b strings.Builder
	for _, t := range r.ran {
		fmt.Fprintf(&b, "ran %s %s\n", t.pkg, t.name)
	}
	for _, s := range r.skipped {
		fmt.Fprintf(&b, "skip %s %s %s\n", s.pkg, s.name, s.why)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(b.String()) // at once: others may write, too
	return errors.Join(err, f.Close())
}
