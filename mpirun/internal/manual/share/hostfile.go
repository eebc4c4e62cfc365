package main

import (
	"fmt"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"

	"gompi/mpirun/internal/manual"
)

// hostfilePage makes the page of the hostfile format from the doc comment of package hostfile.
func hostfilePage() (string, error) {
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", "gompi/hostfile").Output()
	if err != nil {
		return "", fmt.Errorf("go list gompi/hostfile: %w", err)
	}
	path := filepath.Join(strings.TrimSpace(string(dir)), "hostfile.go")
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(manual.Head("gompi-hostfile", 5, "lists of hosts for gompirun"))
	manual.Verbatim(&b, "SYNOPSIS", []string{"gompirun -hostfile FILE ..."})
	b.WriteString(".SH DESCRIPTION\n")
	text := strings.Replace(file.Doc.Text(), "Package hostfile reads", "gompirun reads", 1)
	var p comment.Parser
	doc := p.Parse(text)
	for _, block := range doc.Content {
		switch block := block.(type) {
		case *comment.Paragraph:
			fmt.Fprintf(&b, ".PP\n%s\n", manual.Escape(plain(block.Text)))
		case *comment.Code:
			b.WriteString(".PP\n.RS\n.nf\n")
			for line := range strings.Lines(block.Text) {
				b.WriteString(manual.Escape(line))
			}
			b.WriteString(".fi\n.RE\n")
		default:
			return "", fmt.Errorf("package hostfile: its text has a %T: want paragraphs and indented blocks", block)
		}
	}
	manual.Verbatim(&b, "EXAMPLES", []string{"node1 slots=4", "node2 slots=4 max_slots=8", "rack[1-4]n[01-16]:8",
		"user@node3:2 port=2222", "^node4"})
	return b.String(), nil
}

// plain returns text without links and emphasis.
func plain(text []comment.Text) string {
	var b strings.Builder
	for _, t := range text {
		switch t := t.(type) {
		case comment.Plain:
			b.WriteString(string(t))
		case comment.Italic:
			b.WriteString(string(t))
		case *comment.Link:
			b.WriteString(plain(t.Text))
		case *comment.DocLink:
			b.WriteString(plain(t.Text))
		}
	}
	return b.String()
}
