package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
)

// Write writes the summary in the format of file's extension: .json, .html, .csv, or else tables.
func (s *Summary) Write(w io.Writer, file string) error {
	switch filepath.Ext(file) {
	case ".json":
		e := json.NewEncoder(w)
		e.SetIndent("", " ")
		return e.Encode(s)
	case ".csv":
		return s.CSV(w)
	case ".html":
		return s.HTML(w)
	}
	return s.Text(w)
}

// CSV writes the sites, each in a line.
func (s *Summary) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	out.Write([]string{"call", "called at", "ranks", "calls", "bytes", "time/rank (s)", "min (s)", "max (s)", "slowest call (s)",
		"imbalance (%)", "wait (%)", "late", "bandwidth (B/s)"})
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
	for _, l := range s.Sites {
		late := ""
		if l.Latest >= 0 {
			late = fmt.Sprint(l.Latest)
		}
		out.Write([]string{l.Op, l.Place, fmt.Sprint(l.Ranks), fmt.Sprint(l.Calls), fmt.Sprint(l.Bytes), number(l.Mean), number(l.Min), number(l.Max),
			number(l.Slowest), number(l.Imbalance), number(l.Wait), late, number(l.Bandwidth)})
	}
	out.Flush()
	return out.Error()
}
