package timeline

import (
	"strings"
	"testing"
	"time"
)

func TestAFileHasTheEventsOfAllLists(t *testing.T) {
	var one, none, two List
	one.Span(3, 1, "send", 2*time.Microsecond, 5*time.Microsecond, map[string]any{"bytes": 8})
	two.Arrow(7, "message", Point{3, 1, 2 * time.Microsecond}, Point{4, 2, 9 * time.Microsecond})
	var lists [][]byte
	for _, l := range []*List{&one, &none, &two} {
		list, err := l.JSON()
		if err != nil {
			t.Fatal(err)
		}
		lists = append(lists, list)
	}
	const want = `{"displayTimeUnit":"ms","traceEvents":[{"name":"send","ph":"X","pid":3,"tid":1,"ts":2,"dur":3,"args":{"bytes":8}},
{"name":"message","ph":"s","pid":3,"tid":1,"ts":2,"dur":0,"id":7,"cat":"message"},` +
		`{"name":"message","ph":"f","pid":4,"tid":2,"ts":9,"dur":0,"id":7,"bp":"e","cat":"message"}]}` + "\n"
	var got strings.Builder
	if err := Write(&got, lists...); err != nil || got.String() != want {
		t.Errorf("wrote %s, %v, want %s", &got, err, want)
	}
}
