// Package report writes what the benchmarks measured: as a table, CSV or JSON,
// and as tables of ratios between competitors.
package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A Row is one cell of a benchmark: an operation at one size. Times are in
// microseconds, of one operation of all ranks.
type Row struct {
	Impl   string  `json:"impl"`        // whose implementation
	Op     string  `json:"op"`          // with _ip at its end if it worked in place, and _dirty if vectors were written before each call
	NP     int     `json:"np"`          // ranks
	Bytes  int     `json:"bytes"`       // of one rank's vector, or of the block of allgather, alltoall, ...
	Median float64 `json:"usec_median"` // over iterations, each after a barrier
	Min    float64 `json:"usec_min"`
	P99    float64 `json:"usec_p99"`
	Iters  int     `json:"iters"`      // how many iterations
	B2B    float64 `json:"usec_b2b"`   // mean of iterations without a barrier between them; 0: not measured
	AlgBW  float64 `json:"algbw_gbps"` // 1e9 bytes per second: all that the call is about, divided by Median
	BusBW  float64 `json:"busbw_gbps"` // AlgBW in terms of what each link had to carry, as nccl-tests has it
}

// PlainOp returns the operation of a Row's Op, without what says how it was called, and which part
// of it was timed: "mlp" of "mlp/backward".
func PlainOp(op string) string {
	op, _, _ = strings.Cut(op, "/")
	return strings.TrimSuffix(strings.TrimSuffix(op, "_dirty"), "_ip")
}

// Header is the first line of the CSV form.
const Header = "impl,op,np,bytes,usec_median,usec_min,usec_p99,iters,usec_b2b,algbw_gbps,busbw_gbps"

// Fields returns r as the columns of Header.
func (r Row) Fields() []string {
	usec := func(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64) }
	gbps := func(x float64) string { return strconv.FormatFloat(x, 'f', 4, 64) }
	return []string{
		r.Impl, r.Op, strconv.Itoa(r.NP), strconv.Itoa(r.Bytes),
		usec(r.Median), usec(r.Min), usec(r.P99), strconv.Itoa(r.Iters), usec(r.B2B),
		gbps(r.AlgBW), gbps(r.BusBW),
	}
}

// ParseRow is the inverse of Fields, but for what rounding took.
func ParseRow(fields []string) (Row, error) {
	names := strings.Split(Header, ",")
	if len(fields) != len(names) {
		return Row{}, fmt.Errorf("row %q: want the %d columns %s", strings.Join(fields, ","), len(names), Header)
	}
	var r Row
	columns := []any{&r.Impl, &r.Op, &r.NP, &r.Bytes, &r.Median, &r.Min, &r.P99, &r.Iters, &r.B2B, &r.AlgBW, &r.BusBW}
	for i, column := range columns {
		var err error
		want := "a number"
		switch to := column.(type) {
		case *string:
			*to = fields[i]
		case *int:
			want = "a whole number"
			*to, err = strconv.Atoi(fields[i])
		case *float64:
			*to, err = strconv.ParseFloat(fields[i], 64)
		}
		if err != nil {
			return Row{}, fmt.Errorf("%s %q: want %s", names[i], fields[i], want)
		}
	}
	return r, nil
}

// ReadCSV reads rows after their Header. It returns the rows before an error,
// too: a run that was cut short has measured something.
func ReadCSV(in io.Reader) ([]Row, error) {
	records := csv.NewReader(in)
	records.FieldsPerRecord = -1 // ParseRow says it better
	head, err := records.Read()
	if err == io.EOF {
		return nil, fmt.Errorf("no rows: want the header %s", Header)
	}
	if err != nil {
		return nil, err
	}
	if got := strings.Join(head, ","); got != Header {
		return nil, fmt.Errorf("header %q: want %s", got, Header)
	}
	var rows []Row
	for {
		record, err := records.Read()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		r, err := ParseRow(record)
		if err != nil {
			return rows, err
		}
		rows = append(rows, r)
	}
}
