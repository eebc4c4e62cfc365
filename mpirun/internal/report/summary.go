package report

// A Summary is the report of -stats, with the fields of its JSON. Times are in seconds.
type Summary struct {
	Program string
	Ranks   int
	Hosts   []string
	Runs    int      // of the program, with -max-restarts
	Elapsed float64  // the longest time of a rank in the job
	Verdict string   // the late ranks, in a sentence
	Hint    string   `json:",omitempty"` // if nothing was counted
	Where   string   `json:",omitempty"` // where the others have waited longest for the late ranks
	Late    []int    // ranks that the others have waited for, none if the job is balanced
	Missing []string `json:",omitempty"` // hosts without figures
	Copies  float64  // bytes that one processor copies in a second, on the slowest host
	PerRank []Rank
	Sites   []Site
	Pairs   []Pair // all, the largest first
}

// Summary adds up the collected figures.
func (c *Collector) Summary() *Summary {
	s := &Summary{Program: c.Program, Ranks: c.NP, Hosts: c.hosts, Runs: c.runs, Missing: c.lost}
	for _, n := range c.copies {
		if rate := float64(n); s.Copies == 0 || rate < s.Copies {
			s.Copies = rate
		}
	}
	s.PerRank = c.perRank()
	for _, r := range s.PerRank {
		s.Elapsed = max(s.Elapsed, r.Elapsed)
	}
	s.Sites, s.Pairs = c.sites(s.Elapsed), c.pairs()
	s.Late, s.Verdict, s.Where = c.late(s.Elapsed)
	if len(c.ranks) == 0 {
		s.Hint = c.Hint
	}
	return s
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }
