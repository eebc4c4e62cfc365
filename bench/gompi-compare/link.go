package main

import "gompi/bench/report"

// linkYardstick returns what tells how long an operation takes on links between hosts if its bytes
// take all the time.
func (cfg config) linkYardstick() func(op string, np int) []report.Row {
	return func(op string, np int) []report.Row {
		cells, err := cfg.measured.Rows(op)
		if err != nil {
			return nil
		}
		on := cfg.link.Link
		on.Hosts, on.Ranks = len(cfg.hosts), np/len(cfg.hosts)
		var rows []report.Row
		for _, r := range cells {
			if us, ok := on.Time(op, r.Bytes); ok {
				r.Impl, r.NP, r.Median = report.Limit, np, us
				rows = append(rows, r)
			}
		}
		return rows
	}
}
