package proc

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestAnAgentThatBreaksItsPromiseIsSilent(t *testing.T) {
	const promise = 40 * time.Millisecond
	for _, tt := range []struct {
		name    string
		agent   func(watchdog int)
		starves int // looks at which it gets no processor; then it ends
		silent  bool
	}{
		{"ends", func(int) {}, 0, false},
		{"ends though it has promised a word", func(watchdog int) { Promise(watchdog, time.Hour) }, 0, false},
		{"says nothing more", func(watchdog int) {
			Promise(watchdog, time.Hour)
			Promise(watchdog, promise)
		}, 0, true},
		{"gets no processor for longer than it has promised", func(watchdog int) { Promise(watchdog, promise) },
			2 * looks, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var words, channel [2]int
			for _, p := range []*[2]int{&words, &channel} {
				if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
					t.Fatal(err)
				}
				defer unix.Close(p[0])
			}
			defer unix.Close(channel[1])
			tt.agent(words[1])
			end := func() { unix.Close(words[1]) } // as when a process ends
			switch {
			case tt.silent:
				defer end()
			case tt.starves == 0:
				end()
			}
			looked := 0
			starves := func() bool {
				if looked++; looked == tt.starves {
					end()
				}
				return looked <= tt.starves
			}
			begun := time.Now()
			if got := awaitSilence(words[0], channel[0], starves); got != tt.silent {
				t.Errorf("silent is %v, want %v", got, tt.silent)
			}
			if took := time.Since(begun); tt.silent && took < promise {
				t.Errorf("given up after %v, want %v at least", took, promise)
			}
		})
	}
}
