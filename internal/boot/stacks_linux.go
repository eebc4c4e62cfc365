package boot

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"gompi/internal/boot/wire"
)

// Ranks that are missing where others wait are often in none of our calls, so
// nobody polls the agent's socket. For the agent to learn all the same what
// their goroutines are in, a goroutine of its own waits for the socket. It costs
// nothing while nothing comes, but wakes for what the engine would read as well:
// so there is one only where the user has asked for stacks.

// maxStacks bounds the text of all goroutines.
const maxStacks = wire.MaxCard - 16

// watch starts that goroutine. It ends with the socket.
func (l *linked) watch() {
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
func (l *linked) look() bool {
	l.mu.Lock()
	l.pull()
	more, news, wake := !l.gone, len(l.events) > 0, l.wake
	l.mu.Unlock()
	if news && wake != nil {
		wake() // whoever waits for the socket finds it empty
	}
	return more
}

// tellStacks answers the agent. Stopping all goroutines for it takes some ten
// microseconds each.
func (l *linked) tellStacks() {
	text := make([]byte, maxStacks)
	text = text[:runtime.Stack(text, true)]
	l.out = wire.Append(l.out, &wire.Stacks{Text: text})
	l.flush()
}
