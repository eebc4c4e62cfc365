package job

import (
	"fmt"
	"slices"
	"strings"
	"syscall"

	"gompi/mpirun/internal/ctl"
)

// crashes are the signals that kill C, C++ or Fortran programs because of errors.
var crashes = []syscall.Signal{syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGABRT}

// whereCrashed returns how to find the place of a crash in the program, "" if there was no crash.
func (j *Job) whereCrashed(m *ctl.Exited) string {
	if !slices.Contains(crashes, syscall.Signal(m.Signal)) {
		return ""
	}
	argv := j.spec.Programs[j.plan.Ranks[j.recover.original(m.Rank)].Prog].Argv
	var words []string
	for _, w := range argv {
		words = append(words, shellWord(w))
	}
	taker, piped := strings.CutPrefix(m.CoreFile, "|")
	switch {
	case piped && strings.Contains(taker, "systemd-coredump"):
		return fmt.Sprintf("where it was: coredumpctl gdb %d", m.PID)
	case piped:
		return fmt.Sprintf("its core went to %s", taker)
	case m.CoreFile != "":
		return fmt.Sprintf("where it was: gdb -batch -ex bt %s %s", words[0], shellWord(m.CoreFile))
	}
	return "to see where it is then: gompirun ... gdb -batch -ex run -ex bt --args " + strings.Join(words, " ")
}

// shellWord quotes a word for a shell if necessary.
func shellWord(w string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=:,+@%", r)
	}
	if w != "" && strings.IndexFunc(w, func(r rune) bool { return !plain(r) }) < 0 {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}
