package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// A Writer writes rows in one of the formats, each when it is known. Close ends
// the document; it does not close what is written to.
type Writer interface {
	Write(Row) error
	Close() error
}

// NewWriter returns a Writer to w of the format table, csv or json.
func NewWriter(w io.Writer, format string) (Writer, error) {
	switch format {
	case "table":
		return &tableWriter{w: w}, nil
	case "csv":
		return &csvWriter{w: w}, nil
	case "json":
		return &jsonWriter{w: w}, nil
	}
	return nil, fmt.Errorf("format %q: want table, csv or json", format)
}

// A tableWriter writes a block of aligned lines for each operation.
type tableWriter struct {
	w  io.Writer
	op string
}

func (t *tableWriter) Write(r Row) error {
	if r.Op != t.op {
		gap := "\n"
		if t.op == "" {
			gap = ""
		}
		t.op = r.Op
		head := fmt.Sprintf("%-15s %4s %12s %12s %12s %12s %12s %8s %9s %9s", "op", "np", "bytes",
			"median us", "min us", "p99 us", "b2b us", "iters", "alg GB/s", "bus GB/s")
		if _, err := fmt.Fprintf(t.w, "%s%s\n", gap, head); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(t.w, "%-15s %4d %12d %12.2f %12.2f %12.2f %12.2f %8d %9.3f %9.3f\n",
		r.Op, r.NP, r.Bytes, r.Median, r.Min, r.P99, r.B2B, r.Iters, r.AlgBW, r.BusBW)
	return err
}

func (t *tableWriter) Close() error { return nil }

// A csvWriter writes lines without quotes: no column can hold a comma.
type csvWriter struct {
	w       io.Writer
	started bool
}

func (c *csvWriter) Write(r Row) error {
	if err := c.start(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(c.w, strings.Join(r.Fields(), ","))
	return err
}

func (c *csvWriter) start() error {
	if c.started {
		return nil
	}
	c.started = true
	_, err := fmt.Fprintln(c.w, Header)
	return err
}

func (c *csvWriter) Close() error { return c.start() }

// A jsonWriter writes one array, an element to a line.
type jsonWriter struct {
	w    io.Writer
	rows int
}

func (j *jsonWriter) Write(r Row) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	before := ",\n"
	if j.rows == 0 {
		before = "[\n"
	}
	j.rows++
	_, err = fmt.Fprintf(j.w, "%s%s", before, b)
	return err
}

func (j *jsonWriter) Close() error {
	end := "\n]\n"
	if j.rows == 0 {
		end = "[]\n"
	}
	_, err := io.WriteString(j.w, end)
	return err
}
