package boot

import (
	"bytes"
	"cmp"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"gompi/internal/boot/wire"
)

// A rank that others wait for is often in no call of gompi, so nothing polls the agent's socket. A
// separate goroutine therefore reads it, so that the agent can still ask for stacks. It costs
// nothing while no message arrives, but it wakes for messages that the engine would read anyway. So
// it runs only if the user asked for stacks.

// maxStacks bounds the text of all goroutines.
const maxStacks = wire.MaxCard - 16

// watch starts that goroutine. It ends with the socket.
func (l *agentConn) watch() {
	fd, err := unix.FcntlInt(uintptr(l.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), "agent")
	conn, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return
	}
	go func() {
		defer f.Close()
		conn.Read(func(uintptr) bool { return !l.look() })
	}()
}

// look reads what has come, answers what is for this goroutine, and leaves the
// rest to Events. It reports whether more may come.
func (l *agentConn) look() bool {
	l.mu.Lock()
	l.pull()
	more, news, wake := !l.gone, len(l.events) > 0, l.wake
	l.mu.Unlock()
	if news && wake != nil {
		wake() // the socket is empty now: it does not wake the driver
	}
	return more
}

// sendStacks answers the agent. Stopping all goroutines for it takes some ten
// microseconds each.
func (l *agentConn) sendStacks() {
	text := make([]byte, 16*maxStacks)
	text = sortStacks(text[:runtime.Stack(text, true)])
	l.out = wire.Append(l.out, &wire.Stacks{Text: text[:min(len(text), maxStacks)]})
	l.flush()
}

// sortStacks returns the stacks of all goroutines, as runtime.Stack prints them, in the order in
// which a reader wants them: first those that have called package comm, then main, then others of
// the program, and last those that the runtime and this library started.
func sortStacks(text []byte) []byte {
	stacks := bytes.Split(bytes.TrimRight(text, "\n"), []byte("\n\n"))
	slices.SortStableFunc(stacks, func(a, b []byte) int { return cmp.Compare(stackOrder(a), stackOrder(b)) })
	return append(bytes.Join(stacks, []byte("\n\n")), '\n')
}

// stackOrder returns where a goroutine's stack comes among others.
func stackOrder(stack []byte) int {
	calls, creator, _ := strings.Cut(string(stack), "\ncreated by ")
	for _, own := range []string{"runtime.", "os/signal.", "internal/", "gompi/comm.", "gompi/comm/", "gompi/internal/", "gompi/transport/"} {
		if strings.HasPrefix(creator, own) {
			return 3
		}
	}
	switch {
	case strings.Contains(calls, "\ngompi/comm."):
		return 0
	case strings.HasPrefix(calls, "goroutine 1 "):
		return 1
	}
	return 2
}
