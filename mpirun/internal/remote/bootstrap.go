package remote

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"gompi/internal/cli"
	"gompi/mpirun/internal/ctl"
)

//go:embed bootstrap.sh
var bootstrapText string

// bootstrap is the script that turns a login into an agent, as one line.
var bootstrap = oneLine(bootstrapText)

// placesTried is the number of folders in which bootstrap.sh tries to store a program.
const placesTried = 2

// oneLine returns a script without comments, empty lines, indentation and newlines.
func oneLine(script string) string {
	var lines []string
	for line := range strings.Lines(script) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}

// Prefixes of a login's lines before the agent's greeting.
const (
	lineWant    = "\x00gompi want"
	lineMachine = "\x00gompi machine "
	lineOther   = "\x00gompi other "
)

// IsOther reports whether the command line args asks for an agent of another build, and then
// writes that to out.
func IsOther(args []string, out io.Writer) bool {
	if len(args) < 2 || args[0] != AgentFlag && args[0] != RelayFlag || args[1] == build() {
		return false
	}
	fmt.Fprintf(out, "%s%s\n", lineOther, ctl.Version)
	return true
}

// A self is this gompirun, to be found on other hosts or sent there.
type self struct {
	path    string // as called
	name    string
	machine string // processor type
	build   string
	size    int64
	role    string // flag that makes it an agent or a relay
}

// executable is this program, even if its file has been replaced.
const executable = "/proc/self/exe"

func newSelf() (self, error) {
	s := self{build: build(), role: AgentFlag}
	var err error
	if s.path, err = calledPath(); err != nil {
		return s, err
	}
	s.name = filepath.Base(s.path)
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return s, fmt.Errorf("uname: %w", err)
	}
	s.machine = unix.ByteSliceToString(u.Machine[:])
	info, err := os.Stat(executable)
	if err != nil {
		return s, err
	}
	s.size = info.Size()
	return s, nil
}

// calledPath returns the absolute path by which this program was called, with links, because
// another host may have the same link to another place.
func calledPath() (string, error) {
	if path, err := exec.LookPath(os.Args[0]); err == nil {
		if path, err = filepath.Abs(path); err == nil && sameFile(path, executable) {
			return path, nil
		}
	}
	return os.Executable()
}

func sameFile(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// build identifies this program: by Go's build ID, which is quick to read, or else by a hash of
// the file.
func build() string {
	id, err := buildID()
	if err != nil {
		id = contents()
	}
	sum := sha256.Sum256([]byte(ctl.Version + " " + id))
	return hex.EncodeToString(sum[:16])
}

func buildID() (string, error) {
	f, err := elf.Open(executable)
	if err != nil {
		return "", err
	}
	defer f.Close()
	note := f.Section(".note.go.buildid")
	if note == nil {
		return "", fmt.Errorf("%s: no build ID", executable)
	}
	data, err := note.Data()
	return string(data), err
}

func contents() string {
	f, err := os.Open(executable)
	if err != nil {
		return ""
	}
	defer f.Close()
	h := sha256.New()
	io.Copy(h, f) // unreadable parts make another build
	return hex.EncodeToString(h.Sum(nil))
}

// command returns the command line that starts an agent on another host: own, the user's, or the
// bootstrap script if own is "". With send the script ignores the gompirun at our path.
func (s self) command(own string, send bool) string {
	if own != "" {
		return own + " " + s.role
	}
	path := s.path
	if send {
		path = ""
	}
	words := []string{"exec sh -c", cli.Quote(bootstrap), "gompirun"}
	for _, w := range []string{path, s.build, s.machine, s.name, fmt.Sprint(s.size), s.role} {
		words = append(words, cli.Quote(w))
	}
	return strings.Join(words, " ")
}

// send writes this program to w.
func (s self) send(w io.Writer) error {
	f, err := os.Open(executable)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.CopyN(w, f, s.size)
	return err
}

// maxGreeting bounds the output of a login before the agent's greeting.
const maxGreeting = 64 << 10

// readGreeting reads r up to the end of the first line that begins as ctl.Magic does, and returns
// that line; with an error, all output so far. The login may have printed anything before.
// Reading is byte by byte, because the bytes after the line are the agent's.
func readGreeting(r io.Reader) (string, error) {
	const mark = "\x00gompi "
	var got []byte
	one := make([]byte, 1)
	for len(got) < maxGreeting {
		if _, err := io.ReadFull(r, one); err != nil {
			return string(got), err
		}
		if got = append(got, one[0]); one[0] != '\n' {
			continue
		}
		if at := bytes.Index(got, []byte(mark)); at >= 0 {
			return string(got[at:]), nil
		}
	}
	return "", fmt.Errorf("it printed %d bytes and is no agent: %.80q", len(got), got)
}
