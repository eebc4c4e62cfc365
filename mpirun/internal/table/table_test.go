package table

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTheWidestColumnsGiveWay(t *testing.T) {
	rows := [][]string{{"host", "links to the others", "end"}, {"node1", "NV18 NV18 PHB µ", "x"}, {"node2", "NV18"}}
	for width, want := range map[int]string{
		100: `host   links to the others  end
node1  NV18 NV18 PHB µ      x
node2  NV18
`,
		22: `host   links to    end
       the others
node1  NV18 NV18   x
       PHB µ
node2  NV18
`,
		19: `host   links    end
       to the
       others
node1  NV18     x
       NV18
       PHB µ
node2  NV18
`,
	} {
		if got := strings.Join(Lay(rows, width), ""); got != want {
			t.Errorf("width %d:\n%s\nwant:\n%s", width, got, want)
		}
	}
	for cell, want := range map[string]string{"/a/long/path": "/a/long/p\nath\n", "a=1;b=222;c,d": "a=1;\nb=222;c,d\n"} {
		if got := Lay([][]string{{"file"}, {cell}}, 9); got[1] != want {
			t.Errorf("%q is laid as %q, want %q", cell, got[1], want)
		}
	}
}

// Tables lose no letter, whatever their cells, and are no wider than the terminal where 8 characters
// for each column fit.
func TestTablesFit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	letters := func(text string) string {
		counted := make([]byte, 128)
		for _, c := range text {
			counted[c]++
		}
		counted[' '], counted['\n'] = 0, 0
		return string(counted)
	}
	for range 2000 {
		rows := make([][]string, 1+r.IntN(4))
		columns := 1 + r.IntN(6)
		for i := range rows {
			for range columns {
				cell := make([]byte, r.IntN(60))
				for k := range cell {
					cell[k] = " ,abcdef"[r.IntN(8)]
				}
				rows[i] = append(rows[i], string(cell))
			}
		}
		width := 10*columns - 2 + r.IntN(100)
		text := ""
		for i, row := range Lay(rows, width) {
			text += row
			if got, want := letters(row), letters(strings.Join(rows[i], "")); got != want {
				t.Fatalf("%q is laid as %q", rows[i], row)
			}
		}
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(line) - 1; n > width {
				t.Fatalf("%d columns: want at most %d:\n%s", n, width, text)
			}
		}
	}
}
