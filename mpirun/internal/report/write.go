package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"gompi/mpirun/internal/table"
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
	return s.Text(w, table.Width)
}

// CSV writes the sites, each in a line.
func (s *Summary) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	g := gridOf(siteColumns, inCSV, s.Sites)
	out.Write(g.Head)
	out.WriteAll(g.Rows)
	return out.Error()
}

// A column is a figure in the forms of the report. It has a title in each form that shows it, else
// "". value returns the figure as data, and as text for people.
type column[T any] struct {
	text, csv, page string
	value           func(*T) (data any, text string)
}

// A form is one of the titles of a column.
type form int

const (
	inText form = iota
	inCSV
	onPage
)

// A grid is lines of figures in one form.
type grid struct {
	Head []string
	Rows [][]string
}

func gridOf[T any](columns []column[T], in form, lines []T) grid {
	g := grid{Rows: make([][]string, len(lines))}
	for _, c := range columns {
		title := [...]string{c.text, c.csv, c.page}[in]
		if title == "" {
			continue
		}
		g.Head = append(g.Head, title)
		for i := range lines {
			data, text := c.value(&lines[i])
			if in == inCSV {
				text = number(data)
			}
			g.Rows[i] = append(g.Rows[i], text)
		}
	}
	return g
}

func number(data any) string {
	if x, isFloat := data.(float64); isFloat {
		return strconv.FormatFloat(x, 'g', 6, 64)
	}
	return fmt.Sprint(data)
}
