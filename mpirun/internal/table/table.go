// Package table lays cells out as columns that fit a terminal.
package table

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Width is the width of tables that no terminal shows.
const Width = 100

// Lay returns rows as text, each with its newlines, of at most width characters a line where that is
// possible: the widest columns give way, and their cells go over several lines. Rows may have fewer
// cells than the first.
func Lay(rows [][]string, width int) []string {
	widths, gap := fit(rows, width)
	laid := make([]string, len(rows))
	for i, cells := range rows {
		parts, n := make([][]string, len(cells)), 0 // lines of each cell
		for c, cell := range cells {
			parts[c] = wrap(cell, widths[c])
			n = max(n, len(parts[c]))
		}
		for k := range n {
			line := ""
			for c := range cells {
				parts[c] = append(parts[c], make([]string, n-len(parts[c]))...)
				line += fmt.Sprintf("%-*s", widths[c]+gap, parts[c][k])
			}
			laid[i] += strings.TrimRight(line, " ") + "\n"
		}
	}
	return laid
}

// fit returns the widths of columns and of the gaps between them, which are narrow where words are wide.
func fit(rows [][]string, width int) (widths []int, gap int) {
	widths, words := make([]int, len(rows[0])), make([]int, len(rows[0]))
	for _, cells := range rows {
		for c, cell := range cells {
			widths[c] = max(widths[c], utf8.RuneCountInString(cell))
			for _, word := range split(cell) {
				words[c] = max(words[c], utf8.RuneCountInString(strings.TrimLeft(word, " ")))
			}
		}
	}
	all, least := 0, 0
	for c := range widths {
		all, least = all+widths[c], least+words[c]
	}
	if gap = 2; least+gap*(len(words)-1) > width {
		gap = 1
	}
	room := width - all - gap*(len(words)-1)
	for _, least := range [][]int{words, slices.Repeat([]int{8}, len(words))} { // at 8, words are cut
		for ; room < 0; room++ {
			widest := -1
			for c, w := range widths {
				if w > least[c] && (widest < 0 || w > widths[widest]) {
					widest = c
				}
			}
			if widest < 0 {
				break
			}
			widths[widest]--
		}
	}
	return widths, gap
}

// wrap breaks text between words, and words that are longer than a line anywhere.
func wrap(text string, width int) (lines []string) {
	line := ""
	for _, word := range split(text) {
		if utf8.RuneCountInString(line+word) <= width {
			line += word
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		rest := []rune(strings.TrimLeft(word, " "))
		for ; len(rest) > width; rest = rest[width:] {
			lines = append(lines, string(rest[:width]))
		}
		line = string(rest)
	}
	return append(lines, line)
}

// split returns the words of a text, which end before a space or behind a comma or semicolon.
func split(text string) (words []string) {
	begin := 0
	for i, r := range text {
		end := i
		if r == ',' || r == ';' {
			end++
		} else if r != ' ' {
			continue
		}
		words = append(words, text[begin:end])
		begin = end
	}
	return append(words, text[begin:])
}
