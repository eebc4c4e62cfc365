package contest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"gompi/bench/report"
)

// A RawFile takes every sample as it comes; without a name it is nothing.
type RawFile struct {
	f *os.File
	w *bufio.Writer
}

// CreateRaw makes the file of that name, which names the machine in its first line.
func CreateRaw(name string) (*RawFile, error) {
	if name == "" {
		return &RawFile{}, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	r := &RawFile{f: f, w: bufio.NewWriter(f)}
	fmt.Fprintf(r.w, "# %s\n%s\n", Machine(), report.SampleHeader)
	return r, nil
}

// Write writes s at once, so that a run that is cut short leaves its rows.
func (r *RawFile) Write(s report.Sample) error {
	if r.f == nil {
		return nil
	}
	fmt.Fprintf(r.w, "%d,%s,%s\n", s.Round, s.State, strings.Join(s.Fields(), ","))
	return r.w.Flush()
}

// Close ends the file.
func (r *RawFile) Close() error {
	if r.f == nil {
		return nil
	}
	return errors.Join(r.w.Flush(), r.f.Close())
}
