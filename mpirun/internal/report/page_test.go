package report

import (
	"fmt"
	"html"
	"strings"
	"testing"

	"gompi/internal/stats"
	"gompi/internal/stress/browser"
)

func pageOf(t *testing.T, c *Collector) string {
	var b strings.Builder
	if err := c.Summary().HTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestThePageOfAJobWithoutFiguresHasNone(t *testing.T) {
	c := New("prog", 2)
	c.Hint = "gompi <counts>"
	page := pageOf(t, c)
	_, body, _ := strings.Cut(page, "<body>")
	if strings.Contains(body, "0 ") || strings.Contains(body, "<table") || !strings.Contains(body, "(gompi &lt;counts&gt;)") {
		t.Errorf("%s\nwant the verdict and the hint alone", body)
	}
}

// wide collects ranks with long names, hundreds of calls each, and messages to all.
func wide(np int) *Collector {
	c := New("/home/user/projects/"+strings.Repeat("climate", 12), np)
	c.Run()
	for i := range np {
		f := stats.Figures{Rank: i, Left: 1000 * ms, Busy: int64(300+i%7) * ms}
		for k := range 12 {
			f.Sites = append(f.Sites, stats.Site{Op: "MPI_Neighbor_alltoallv_init",
				Place: fmt.Sprintf("%s/exchange_halo.f90:%d", strings.Repeat("deep", k), 1000+k),
				Counts: stats.Counts{Calls: 123_456_789, Bytes: 123_456_789_012, Time: int64(i%5*100+123) * ms,
					Fastest: 1234, Slowest: 123 * ms}})
		}
		for to := range np {
			f.Peers = append(f.Peers, stats.Peer{Rank: to, Messages: uint64(i * to), Bytes: uint64(i * to * 1000)})
		}
		c.Add(fmt.Sprintf("node%04d.rack17.cluster.example.org", i/8), &f, 1e10)
	}
	return c
}

// measured is a page that shows others in frames, and then says which of their parts do not fit.
const measured = `<!doctype html><body>%s<script>
onload = () => { document.body.textContent = [...document.querySelectorAll("iframe")].map(frame => {
	const page = frame.contentDocument, all = page.documentElement, said = [];
	if (all.scrollWidth > all.clientWidth)
		said.push("the page wants " + all.scrollWidth);
	for (const part of page.querySelectorAll(".scroll"))
		if (all.clientWidth > 900 && part.scrollWidth > part.clientWidth)
			said.push("a table wants " + part.scrollWidth + " of " + part.clientWidth);
	const cells = [...page.querySelectorAll(".matrix span")].map(cell => cell.getBoundingClientRect());
	const side = cells.length && cells[0].width;
	if (cells.some(cell => Math.abs(cell.width - side) > 0.1 || Math.abs(cell.height - side) > 0.1))
		said.push("cells are unequal");
	return frame.width + " pixels, " + cells.length + " cells: " + (said.join(", ") || "fits");
}).join("; ") }
</script>`

func TestThePageFitsWindows(t *testing.T) {
	frames, want := "", ""
	for _, np := range []int{4, 16, 64} {
		page := html.EscapeString(pageOf(t, wide(np)))
		for _, width := range []int{400, 1000, 1600} {
			frames += fmt.Sprintf(`<iframe width="%d" height="900" srcdoc="%s"></iframe>`, width, page)
			want += fmt.Sprintf("%d pixels, %d cells: fits; ", width, np*np)
		}
	}
	out := browser.Load(t, fmt.Sprintf(measured, frames))
	if !strings.Contains(out, strings.TrimSuffix(want, "; ")+"<") {
		t.Errorf("%s\nwant %s", out, want)
	}
}
