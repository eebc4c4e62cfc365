package tcp

import (
	"fmt"
	"strings"
	"testing"
)

func TestSmallFramesInARowLeaveTogetherAndInOrder(t *testing.T) {
	for _, macs := range []bool{false, true} {
		t.Run(fmt.Sprintf("MACs %v", macs), func(t *testing.T) { leaveTogether(t, macs) })
	}
}

func leaveTogether(t *testing.T, macs bool) {
	ranks := startAll(t, 2, func(cfg *Config) { cfg.FrameMAC = macs })
	ranks[0].sendText(1, "contact")
	until(t, ranks, "contact", func() bool { return len(ranks[1].got) == 1 })
	ranks[0].Poll(-1)
	ranks[0].sendText(1, "0")
	if ranks[0].Pending() || !ranks[0].Arm() {
		t.Error("a single frame waits for company")
	}
	ranks[0].sendText(1, "1")
	if !ranks[0].Pending() || ranks[0].Arm() {
		t.Error("a caller may sleep on a frame that waits for company")
	}
	ranks[0].Poll(-1)
	if ranks[0].Pending() {
		t.Error("gathered frames have not left at the next Poll")
	}
	until(t, ranks, "two frames", func() bool { return len(ranks[1].got) == 3 })

	// Large frames, empty ones and many in a row keep their places.
	want := ranks[1].got
	for i := range 5 * burstFrames {
		size := []int{0, 8, burstLimit, 3 * burstLimit, 200 << 10}[i%5]
		payload := fmt.Sprintf("%d:%s", i, strings.Repeat("x", size))
		want = append(want, payload)
		ranks[0].sendText(1, payload)
	}
	until(t, ranks, "the rest", func() bool { return len(ranks[1].got) == len(want) })
	until(t, ranks, "all bytes", func() bool { return ranks[1].got[len(want)-1] != "" })
	for i, w := range want {
		if got := ranks[1].got[i]; got != w {
			t.Fatalf("frame %d begins %.20q with %d bytes, want %.20q with %d", i, got, len(got), w, len(w))
		}
	}
}

func TestBurstsAreBounded(t *testing.T) {
	ranks := startAll(t, 2, nil)
	ranks[0].sendText(1, "contact")
	until(t, ranks, "contact", func() bool { return len(ranks[1].got) == 1 })
	ranks[0].Poll(-1)
	for range burstFrames + 1 {
		ranks[0].sendText(1, "")
	}
	if p := ranks[0].peers[1]; !p.out.Empty() {
		t.Errorf("%d frames wait after %d were sent in a row", p.out.Len(), burstFrames+1)
	}
}
