package failure

import (
	"testing"
	"time"
)

func TestTheFirstOfQuestionsThatComeSoonAfterEachOtherCounts(t *testing.T) {
	var l Leaving
	const first = int64(time.Hour)
	for _, q := range []struct{ asked, want time.Duration }{{0, 0}, {600 * time.Millisecond, 0},
		{20 * time.Second, 20 * time.Second}} {
		l.note(1, first+int64(q.asked))
		if got := time.Duration(l.asked[1] - first); got != q.want {
			t.Errorf("after a question at %v, what counts is %v, want %v", q.asked, got, q.want)
		}
	}
}
