package boot

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Goroutines of the library are left out, and its frames in the caller's stack.
func TestStacksAreTheProgramsOwn(t *testing.T) {
	const text = `goroutine 7 [running]:
gompi/internal/boot.(*agentConn).sendStacks(0x1)
	x.go:1
created by gompi/internal/boot.(*agentConn).watch in goroutine 1
	x.go:2

goroutine 3 [select]:
net/http.(*Server).Serve(0x1)
	x.go:3
created by main.serve in goroutine 1
	x.go:4

goroutine 1 [chan receive]:
main.main()
	x.go:5

goroutine 4 [syscall]:
os/signal.signal_recv()
	x.go:6
created by os/signal.Notify.func1.1 in goroutine 1
	x.go:7

goroutine 5 [select]:
gompi/internal/core/message.(*Engine).block(0x1)
	x.go:8
gompi/comm.Barrier(0x1)
	x.go:9
main.work()
	x.go:10
created by main.main in goroutine 1
	x.go:11

goroutine 6 [select]:
gompi/internal/core/rma.(*Window).Fence(0x1)
	x.go:8
gompi/comm/window.(*Window).Fence(...)
	x.go:9
main.work()
	x.go:10
created by main.main in goroutine 1
	x.go:11
`
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^goroutine (\d)`).FindAllSubmatch(sortStacks([]byte(text)), -1) {
		got = append(got, string(m[1]))
	}
	if want := []string{"5", "6", "1", "3"}; !slices.Equal(got, want) {
		t.Errorf("goroutines %v, want %v", got, want)
	}
	const first = `goroutine 5 [select]:
gompi/comm.Barrier(0x1)
	x.go:9
main.work()
`
	if sorted := string(sortStacks([]byte(text))); !strings.HasPrefix(sorted, first) {
		t.Errorf("%s\nwant it to begin with\n%s", sorted, first)
	}
}
