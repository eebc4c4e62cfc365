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

// A late rank is often in no call of gompi, so nothing polls the agent's socket. A separate
// goroutine therefore reads the socket, so that the agent can still ask for stacks. The goroutine
// is idle while no message arrives, but wakes for messages that the engine would read anyway. So
// the goroutine runs only if the user asked for stacks.

// maxStacks bounds the text of all goroutines.
const maxStacks = wire.MaxCard - 16

// watch starts the reader, which ends with the socket.
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

// look reads the messages that have arrived, answers requests for stacks, and leaves the rest to
// Events. look reports whether more may come.
func (l *agentConn) look() bool {
	l.mu.Lock()
	l.pull()
	more, news, wake := !l.gone, len(l.events) > 0, l.wake
	l.mu.Unlock()
	if news && wake != nil {
		wake() // the empty socket does not wake the driver
	}
	return more
}

// NotInGo, if set, returns the stacks of the threads of a program that is not in Go, or nil if only
// a debugger can. The function may block. Libraries for C set NotInGo before Init.
var NotInGo func() []byte

// sendStacks answers the agent. sendStacks stops each goroutine for some ten microseconds.
func (l *agentConn) sendStacks() {
	if NotInGo != nil {
		l.admitDebugger()
		go func() { // ends when NotInGo has returned, at the latest with the process
			text := NotInGo()
			l.mu.Lock()
			defer l.mu.Unlock()
			l.answerStacks(text)
		}()
		return
	}
	text := make([]byte, 16*maxStacks)
	l.answerStacks(sortStacks(text[:runtime.Stack(text, true)]))
}

func (l *agentConn) answerStacks(text []byte) {
	if !l.gone {
		l.out = wire.Append(l.out, &wire.Stacks{Text: text[:min(len(text), maxStacks)]})
		l.flush()
	}
}

// admitDebugger lets the agent and its children trace this process where the kernel (Yama) allows
// only ancestors to.
func (l *agentConn) admitDebugger() {
	if agent, err := unix.GetsockoptUcred(l.fd, unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil && agent.Pid > 0 {
		_ = unix.Prctl(unix.PR_SET_PTRACER, uintptr(agent.Pid), 0, 0, 0) // EINVAL without Yama
	}
}

// sortStacks orders the stacks of all goroutines, as runtime.Stack prints them, for a reader: first
// callers of package comm, then main, then other goroutines of the program. sortStacks drops
// goroutines of the runtime and of this library, and from the other stacks the frames inside
// package comm.
func sortStacks(text []byte) []byte {
	stacks := bytes.Split(bytes.TrimRight(text, "\n"), []byte("\n\n"))
	stacks = slices.DeleteFunc(stacks, func(s []byte) bool { return stackOrder(s) == ofLibrary })
	slices.SortStableFunc(stacks, func(a, b []byte) int { return cmp.Compare(stackOrder(a), stackOrder(b)) })
	for i, s := range stacks {
		stacks[i] = fromProgram(s)
	}
	return append(bytes.Join(stacks, []byte("\n\n")), '\n')
}

// fromProgram returns a stack from the first function of package comm that the program called. A
// frame is two lines, of which the first is the function.
func fromProgram(stack []byte) []byte {
	lines := bytes.SplitAfter(stack, []byte("\n"))
	called := 0
	for i := 1; i+1 < len(lines); i += 2 {
		if !slices.ContainsFunc(ownPackages, func(own string) bool { return bytes.HasPrefix(lines[i], []byte(own)) }) {
			break
		}
		if bytes.HasPrefix(lines[i], []byte("gompi/comm")) {
			called = i
		}
	}
	if called == 0 {
		return stack
	}
	return bytes.Join(append(lines[:1:1], lines[called:]...), nil)
}

// ownPackages are the prefixes of functions' names in the runtime and in this library.
var ownPackages = []string{"runtime.", "os/signal.", "os.", "sync.", "time.", "context.", "internal/", "gompi/comm.",
	"gompi/comm/", "gompi/internal/", "gompi/mpi/", "gompi/transport/"}

// ofLibrary is the order of a stack that is not the program's.
const ofLibrary = 3

// stackOrder returns the place of a goroutine's stack among others.
func stackOrder(stack []byte) int {
	calls, creator, _ := strings.Cut(string(stack), "\ncreated by ")
	if slices.ContainsFunc(ownPackages, func(own string) bool { return strings.HasPrefix(creator, own) }) {
		return ofLibrary
	}
	switch {
	case strings.Contains(calls, "\ngompi/comm.") || strings.Contains(calls, "\ngompi/comm/"):
		return 0
	case strings.HasPrefix(calls, "goroutine 1 "):
		return 1
	}
	return 2
}
