package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"sync"
)

//go:embed page.html
var pageText string

// page is parsed on demand, because gompirun seldom writes HTML.
var page = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"duration": duration, "count": count,
		"amount": func(n uint64) string { return Amount(float64(n)) }, "copies": Amount,
		"per": func(x, of float64) string { return fmt.Sprintf("%.1f", 100*x/max(of, 1e-9)) },
	}).Parse(pageText))
})

// mostMatrix is the most ranks for which the page has a matrix of messages.
const mostMatrix = 64

// HTML writes the summary as one self-contained page.
func (s *Summary) HTML(w io.Writer) error {
	return page().Execute(w, content{s, gridOf(siteColumns, onPage, s.Sites), gridOf(rankColumns, onPage, s.PerRank),
		gridOf(pairColumns, onPage, s.Pairs[:min(len(s.Pairs), 20)]), s.matrix()})
}

// A content is the data of the page.
type content struct {
	*Summary
	Calls, Times, Top grid
	Matrix            [][]cell
}

// Label names a rank beside the matrix: of more than 16 ranks only each eighth has room for it.
func (c content) Label(rank int) string {
	if c.Ranks > 16 && rank%8 != 0 {
		return ""
	}
	return strconv.Itoa(rank)
}

// A cell is the messages from one rank to another, and their shade in the matrix, 0 to 1.
type cell struct {
	Pair
	Shade float64
}

// matrix returns the messages between all pairs, nil if there are none, or too many ranks.
func (s *Summary) matrix() [][]cell {
	if len(s.Pairs) == 0 || s.Ranks > mostMatrix {
		return nil
	}
	rows := make([][]cell, s.Ranks)
	for from := range rows {
		rows[from] = make([]cell, s.Ranks)
		for to := range rows[from] {
			rows[from][to].From, rows[from][to].To = from, to
		}
	}
	most := float64(max(1, s.Pairs[0].Bytes))
	for _, p := range s.Pairs {
		if p.From < s.Ranks && p.To < s.Ranks {
			rows[p.From][p.To] = cell{p, 0.1 + 0.9*float64(p.Bytes)/most}
		}
	}
	return rows
}
