package report

import (
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"os"
	"strings"

	"gompi/internal/atomicfile"
)

// style is the page's style sheet. The colours are told apart by most people who
// see few, and have enough contrast on white and on black.
const style = `
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #fff; --dim: #666; --rule: #d8d8d8; --lost: #b00020 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --paper: #161616; --dim: #a0a0a0; --rule: #3a3a3a; --lost: #ff7a85 } }
@media print { :root { --ink: #000; --paper: #fff; --dim: #444; --rule: #bbb } details { display: none } tr { break-inside: avoid } }
body { font: 16px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 76rem; margin: 0 auto; padding: 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.2rem; margin-top: 2.5rem; border-top: 1px solid var(--rule); padding-top: 1rem }
.facts { color: var(--dim); font-size: .85rem; padding-left: 1.2rem; overflow-wrap: anywhere }
.charts { columns: 22rem; column-gap: 1.5rem }
figure { margin: 0 0 1.5rem; break-inside: avoid } figcaption { font-weight: 600 } figcaption small { font-weight: 400; color: var(--dim) }
figure > svg { width: 100%; height: auto } svg text { font-size: 12px; fill: var(--ink) } svg .strong { font-weight: 600 }
.grid { stroke: var(--rule); fill: none } .even { stroke: var(--ink); fill: none }
.limit path { fill: none; stroke: var(--dim); stroke-dasharray: 5 4 } .line { fill: none !important; stroke-width: 2 }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1rem; padding: 0; margin: .3rem 0; font-size: .85rem }
.legend svg { width: .9em; height: .9em; margin-right: .35em; vertical-align: -.08em }
.s0 path { fill: #0072b2; stroke: #0072b2 } .s1 path { fill: #d55e00; stroke: #d55e00 } .s2 path { fill: #009e73; stroke: #009e73 }
.s3 path { fill: #cc79a7; stroke: #cc79a7 } .s4 path { fill: #b58900; stroke: #b58900 } .s5 path { fill: #56b4e9; stroke: #56b4e9 }
.s6 path { fill: #8a63d2; stroke: #8a63d2 } .s7 path { fill: #7f7f7f; stroke: #7f7f7f }
.scroll { overflow-x: auto } table { border-collapse: collapse; font-size: .75rem; font-variant-numeric: tabular-nums }
th, td { padding: .15rem .3rem; text-align: right; border-bottom: 1px solid var(--rule); white-space: nowrap }
@media (max-width: 30rem) { body { padding: .7rem } table { font-size: .68rem } th, td { padding: .15rem .2rem } }
.verdict { font-size: 1.05rem } .warning { color: var(--lost); border-left: .3rem solid var(--lost); padding-left: .6rem }
.lost { color: var(--lost); font-weight: 600 } pre { font-size: .75rem; overflow-x: auto }
`

// WritePage writes sections as one HTML page that needs nothing else: no script,
// no font, no network. It is well-formed XML, too.
func WritePage(w io.Writer, sections []Section) error {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n<meta charset=\"utf-8\"/>\n")
	b.WriteString("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>gompi: measurements</title>\n")
	// In XML a style sheet is text like any other.
	fmt.Fprintf(&b, "<style>%s</style>\n</head>\n<body>\n<h1>gompi: measurements</h1>\n", style)
	if len(sections) == 0 {
		b.WriteString("<p>Nothing has been measured yet.</p>\n")
	}
	for _, s := range sections {
		s.write(&b)
	}
	b.WriteString("</body>\n</html>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (s Section) write(b *strings.Builder) {
	s = s.clean()
	fmt.Fprintf(b, "<section>\n<h2>%s</h2>\n", html.EscapeString(s.Title))
	if v := s.verdict(); v != "" {
		fmt.Fprintf(b, "<p class=\"verdict\">%s</p>\n", html.EscapeString(v))
	}
	if s.Warning != "" {
		fmt.Fprintf(b, "<p class=\"warning\">Warning: %s</p>\n", html.EscapeString(s.Warning))
	}
	if len(s.Facts) > 0 {
		b.WriteString("<ul class=\"facts\">\n")
		for _, f := range s.Facts {
			fmt.Fprintf(b, "<li>%s</li>\n", html.EscapeString(f))
		}
		b.WriteString("</ul>\n")
	}
	b.WriteString("<div class=\"charts\">\n")
	for _, c := range s.charts() {
		better := "less is better"
		if c.moreIsBetter() {
			better = "more is better"
		}
		fmt.Fprintf(b, "<figure>\n<figcaption>%s <small>%s, %s</small></figcaption>\n", html.EscapeString(c.title), html.EscapeString(c.yUnit), better)
		fmt.Fprintf(b, "%s\n", c.draw())
		if g := c.gains(); g != nil {
			fmt.Fprintf(b, "%s\n", g.draw())
		}
		c.table(b)
		b.WriteString("</figure>\n")
	}
	fmt.Fprintf(b, "</div>\n<details><summary>the rows</summary>\n<pre class=\"%s\">%s</pre>\n</details>\n</section>\n", rowsClass, html.EscapeString(s.Text()))
}

// rowsClass is the class of the elements that a page is read back from.
const rowsClass = "rows"

// table writes the values of a chart, and how much better the first series is
// than the best other.
func (c *chart) table(b *strings.Builder) {
	fmt.Fprintf(b, "<div class=\"scroll\"><table>\n<tr><th>%s</th>", html.EscapeString(c.xUnit))
	for _, s := range c.series {
		fmt.Fprintf(b, "<th>%s</th>", html.EscapeString(s))
	}
	if c.compares() {
		b.WriteString("<th>ratio</th>")
	}
	b.WriteString("</tr>\n")
	for _, x := range c.xs {
		fmt.Fprintf(b, "<tr><th>%s</th>", html.EscapeString(c.label(x)))
		for _, s := range c.series {
			v, ok := c.at[[2]string{s, x}]
			switch {
			case c.yUnit == Times:
				b.WriteString(gainCell(v, ok))
			case ok:
				fmt.Fprintf(b, "<td>%s</td>", figure(v))
			default:
				b.WriteString("<td>missing</td>")
			}
		}
		if c.compares() {
			b.WriteString(gainCell(c.gain(x)))
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</table></div>\n")
}

func gainCell(ratio float64, ok bool) string {
	switch {
	case !ok:
		return "<td>missing</td>"
	case ratio < 1:
		return fmt.Sprintf(`<td class="lost">%.2f lost</td>`, ratio)
	}
	return fmt.Sprintf("<td>%.2f</td>", ratio)
}

// ReadPage returns the sections of a page that WritePage has written.
func ReadPage(r io.Reader) ([]Section, error) {
	d := xml.NewDecoder(r)
	d.Entity = xml.HTMLEntity
	var sections []Section
	title := false // the page is one of ours
	for {
		token, err := d.Token()
		if err == io.EOF {
			if !title {
				return nil, errors.New("this is no page of measurements")
			}
			return sections, nil
		}
		if err != nil {
			return nil, err
		}
		el, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		title = title || el.Name.Local == "h1"
		if el.Name.Local != "pre" || class(el) != rowsClass {
			continue
		}
		var text string
		if err := d.DecodeElement(&text, &el); err != nil {
			return nil, err
		}
		s, err := ParseSection(text)
		if err != nil {
			return nil, err
		}
		sections = append(sections, s)
	}
}

func class(el xml.StartElement) string {
	for _, a := range el.Attr {
		if a.Name.Local == "class" {
			return a.Value
		}
	}
	return ""
}

// Put returns sections with s at its end, or in the place of the one with the
// same title.
func Put(sections []Section, s Section) []Section {
	s = s.clean()
	for i := range sections {
		if sections[i].Title == s.Title {
			sections[i] = s
			return sections
		}
	}
	return append(sections, s)
}

// AddTo adds s to the page in the named file, which it makes if there is none.
// A file that is no such page is left alone. Without a name it does nothing.
func (s Section) AddTo(file string) error {
	if file == "" {
		return nil
	}
	var sections []Section
	f, err := os.Open(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		sections, err = ReadPage(f)
		f.Close()
		if err != nil {
			return fmt.Errorf("%s: cannot add to it: %w", file, err)
		}
	}
	return atomicfile.Replace(file, func(w io.Writer) error { return WritePage(w, Put(sections, s)) })
}
