package runner

import (
	"runtime"
	"sync/atomic"
	"testing"
)

func TestBusyTicksLeaveOutIdleAndGuests(t *testing.T) {
	for line, want := range map[string]int64{
		"cpu  100 20 3 9999 8888 4 5 6 77 88": 138, // guests' time is in user and nice
		"cpu  1 2 3 4":                        6,
		"":                                    0,
	} {
		if got := parseBusy(line); got != want {
			t.Errorf("%q: %d ticks, want %d", line, got, want)
		}
	}
}

func TestLoadSeesAProcessorInUse(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc/stat")
	}
	var over atomic.Bool
	ended := make(chan struct{})
	go func() { // until the load has been taken
		defer close(ended)
		for !over.Load() {
		}
	}()
	got := Load()
	over.Store(true)
	<-ended
	if got < IdleLoad {
		t.Errorf("load %.2f with a busy thread, want %v or more", got, IdleLoad)
	}
}
