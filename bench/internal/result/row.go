// Package result holds what a benchmark measured: rows, as CSV and as text, the cells of a
// comparison, with their ratios, and the Report of all of it, as Markdown and as a page.
package result

import (
	"fmt"
	"strconv"
	"strings"
)

// A Row is an operation at one size, as one implementation did it. Times are in microseconds, of
// one operation of all ranks.
type Row struct {
	Impl   string  // whose implementation
	Op     string  // with _ip at its end if it worked in place
	NP     int     // ranks
	Bytes  int     // of one rank's vector, or of the block of allgather, alltoall, ...
	Median float64 // over iterations, each after a barrier
	Min    float64
	P99    float64
	Iters  int     // how many iterations
	B2B    float64 // mean of iterations without a barrier between them; 0: not measured
	AlgBW  float64 // 1e9 bytes per second: all that the call is about, divided by Median
	BusBW  float64 // AlgBW in terms of what each link had to carry, as nccl-tests has it
}

// Header is the first line of the CSV form.
const Header = "impl,op,np,bytes,usec_median,usec_min,usec_p99,iters,usec_b2b,algbw_gbps,busbw_gbps"

// CSV returns r as the columns of Header.
func (r Row) CSV() string {
	return fmt.Sprintf("%s,%s,%d,%d,%.3f,%.3f,%.3f,%d,%.3f,%.4f,%.4f", r.Impl, r.Op, r.NP, r.Bytes, r.Median, r.Min, r.P99, r.Iters, r.B2B, r.AlgBW, r.BusBW)
}

// parse is the inverse of CSV, but for what rounding took.
func parse(fields []string) (r Row, err error) {
	names := strings.Split(Header, ",")
	if len(fields) != len(names) {
		return r, fmt.Errorf("row %q: want the %d columns %s", strings.Join(fields, ","), len(names), Header)
	}
	columns := []any{&r.Impl, &r.Op, &r.NP, &r.Bytes, &r.Median, &r.Min, &r.P99, &r.Iters, &r.B2B, &r.AlgBW, &r.BusBW}
	for i, column := range columns {
		switch to := column.(type) {
		case *string:
			*to = fields[i]
		case *int:
			*to, err = strconv.Atoi(fields[i])
		case *float64:
			*to, err = strconv.ParseFloat(fields[i], 64)
		}
		if err != nil {
			return r, fmt.Errorf("%s %q: want a number", names[i], fields[i])
		}
	}
	return r, nil
}

// ReadCSV reads rows after their Header, before which libraries may have printed something. It
// returns the rows before an error, too: a run that was cut short has measured something.
func ReadCSV(text []byte) (rows []Row, err error) {
	output, lines, ok := strings.Cut(string(text), Header+"\n")
	if !ok {
		return nil, fmt.Errorf("no rows, but %.200q: want the header %s", output, Header)
	}
	for line := range strings.Lines(lines) {
		r, err := parse(strings.Split(strings.TrimRight(line, "\n"), ","))
		if err != nil {
			return rows, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}
