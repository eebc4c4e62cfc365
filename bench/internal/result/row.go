// Package result holds the results of benchmarks: rows, as CSV and as text, the cells of a
// comparison, with their ratios, and the Report, as Markdown and as HTML.
package result

import (
	"fmt"
	"strconv"
	"strings"
)

// A Row is an operation at one size, by one implementation. Times are in microseconds, of one
// operation of all ranks.
type Row struct {
	Impl   string  // name of the implementation
	Op     string  // with the suffix _ip if in place
	NP     int     // ranks
	Bytes  int     // of one rank's vector, or of the block of allgather, alltoall, ...
	Median float64 // over iterations, each after a barrier
	Min    float64
	P99    float64
	Iters  int     // how many iterations
	B2B    float64 // mean of iterations without a barrier between them; 0: not measured
	AlgBW  float64 // 1e9 bytes per second: all data of the call, divided by Median
	BusBW  float64 // AlgBW times the share that each link carries, as in nccl-tests
}

// Header is the first line of the CSV form.
const Header = "impl,op,np,bytes,usec_median,usec_min,usec_p99,iters,usec_b2b,algbw_gbps,busbw_gbps"

// CSV returns r as the columns of Header.
func (r Row) CSV() string {
	return fmt.Sprintf("%s,%s,%d,%d,%.3f,%.3f,%.3f,%d,%.3f,%.4f,%.4f", r.Impl, r.Op, r.NP, r.Bytes, r.Median, r.Min,
		r.P99, r.Iters, r.B2B, r.AlgBW, r.BusBW)
}

// parse is the inverse of CSV, except for rounding.
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

// ReadCSV reads rows after their Header. Other output of libraries may precede it. ReadCSV returns
// the rows before an error, too: an interrupted run has measured them.
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
