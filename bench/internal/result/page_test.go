package result

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gompi/internal/stress/browser"
)

// charts says which words of charts in a page are cut, or lie over others.
const charts = `<script>
onload = () => { document.body.textContent = [...document.querySelectorAll("svg")].map(chart => {
	const all = chart.getBoundingClientRect(), said = [];
	const words = [...chart.querySelectorAll("text")].map(word => [word.textContent, word.getBoundingClientRect()]);
	for (const [i, [word, box]] of words.entries()) {
		if (box.left < all.left || box.right > all.right || box.top < all.top || box.bottom > all.bottom)
			said.push(word + " is cut");
		for (const [other, that] of words.slice(i + 1))
			if (box.left < that.right && that.left < box.right && box.top < that.bottom && that.top < box.bottom)
				said.push(word + " overlaps " + other);
	}
	return words[0][0] + ": " + (said.join(", ") || "legible");
}).join("; ") }
</script>`

func TestWordsOfChartsDoNotOverlap(t *testing.T) {
	long := Chart{Title: "The greatest resident memory of a job, seen from its start to its end (4 hosts)", X: "ranks", Y: "MiB"}
	for _, series := range []string{"gompi", "Intel MPI 2021.13", "MPICH", "Open MPI 5", "srun --mpi=pmix", "torchrun"} {
		long.Points = append(long.Points, Point{Series: series, At: 1, Y: 1}, Point{Series: series, At: 64, Y: 1e5, Chosen: true})
	}
	page := "<!doctype html><body>"
	shown := append(example().Charts, long)
	for _, c := range shown {
		svg, err := c.SVG()
		if err != nil {
			t.Fatal(err)
		}
		page += string(svg)
	}
	files, err := filepath.Glob("../../../docs/plots/*.svg")
	if err != nil || len(files) == 0 {
		t.Fatalf("%q, %v: want docs' charts", files, err)
	}
	for _, file := range files {
		svg, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		page += strings.TrimPrefix(string(svg), `<?xml version="1.0"?>`)
	}
	if out := browser.Load(t, page+charts); strings.Count(out, ": legible") != len(shown)+len(files) {
		t.Errorf("%s\nwant %d legible charts", out, len(shown)+len(files))
	}
}
