package result

import (
	"fmt"
	"io"
)

// A Writer writes rows in the form "table" or "csv", each as soon as it is known.
type Writer struct {
	w    io.Writer
	form string
	op   string // of the last row
	rows int
}

// Forms are the forms of a Writer.
var Forms = []string{"table", "csv"}

// NewWriter returns a Writer to w, whose form is one of Forms.
func NewWriter(w io.Writer, form string) *Writer { return &Writer{w: w, form: form} }

// Write writes r. A header precedes the first row, and in a table each operation.
func (w *Writer) Write(r Row) error {
	first := w.rows == 0
	w.rows++
	if w.form == "csv" {
		if first {
			fmt.Fprintln(w.w, Header)
		}
		_, err := fmt.Fprintln(w.w, r.CSV())
		return err
	}
	if r.Op != w.op {
		if !first {
			fmt.Fprintln(w.w)
		}
		fmt.Fprintf(w.w, "# %s, %d ranks\n%12s %12s %12s %12s %12s %8s %12s %12s\n", r.Op, r.NP,
			"size (B)", "median (us)", "min (us)", "p99 (us)", "b2b (us)", "iters", "algbw (GB/s)", "busbw (GB/s)")
		w.op = r.Op
	}
	_, err := fmt.Fprintf(w.w, "%12d %12.2f %12.2f %12.2f %12.2f %8d %12.3f %12.3f\n", r.Bytes, r.Median, r.Min, r.P99,
		r.B2B, r.Iters, r.AlgBW, r.BusBW)
	return err
}

// Close writes the header if there were no rows.
func (w *Writer) Close() error {
	if w.rows > 0 || w.form != "csv" {
		return nil
	}
	_, err := fmt.Fprintln(w.w, Header)
	return err
}

// Bytes formats a size with the largest binary unit that divides it: "8 B", "64 KiB".
func Bytes(n int) string {
	units := []string{"B", "KiB", "MiB", "GiB"}
	i := 0
	for ; i < len(units)-1 && n != 0 && n%1024 == 0; i++ {
		n /= 1024
	}
	return fmt.Sprintf("%d %s", n, units[i])
}
