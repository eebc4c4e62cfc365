package report

import (
	"encoding/json"
	"io"
	"path/filepath"
)

// Write writes the summary in the form that the ending of a file's name asks for: .json, .html, or
// else tables.
func (s *Summary) Write(w io.Writer, file string) error {
	switch filepath.Ext(file) {
	case ".json":
		e := json.NewEncoder(w)
		e.SetIndent("", " ")
		return e.Encode(s)
	case ".html":
		return s.HTML(w)
	}
	return s.Text(w)
}
