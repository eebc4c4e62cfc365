package watchdog

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestAnAgentThatBreaksItsPromiseIsSilent(t *testing.T) {
	const promise = 40 * time.Millisecond
	for _, tt := range []struct {
		name   string
		agent  func(watchdog int)
		silent bool
	}{
		{"ends", func(int) {}, false},
		{"ends though it has promised a word", func(watchdog int) { Promise(watchdog, time.Hour) }, false},
		{"says nothing more", func(watchdog int) {
			Promise(watchdog, time.Hour)
			Promise(watchdog, promise)
		}, true},
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
			if tt.silent {
				defer unix.Close(words[1])
			} else {
				unix.Close(words[1]) // as when a process ends
			}
			begun := time.Now()
			if got := awaitSilence(words[0], channel[0]); got != tt.silent {
				t.Errorf("silent is %v, want %v", got, tt.silent)
			}
			if took := time.Since(begun); tt.silent && took < promise {
				t.Errorf("given up after %v, want %v at least", took, promise)
			}
		})
	}
}
