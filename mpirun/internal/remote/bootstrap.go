package remote

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
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

// bootstrap turns a login into an agent. It becomes the gompirun at the path
// where ours is, else the one that an earlier job has left in the user's cache,
// else one that it asks for and reads from standard input. Its arguments are
// the path (empty to skip that), the build that is wanted, the kind of machine
// that it runs on, the name to give it, and its size. It says how it goes in
// lines that begin as ctl.Magic does.
//
// Login shells of all kinds read it as one word: there is no single quote in
// it and no exclamation mark.
const bootstrap = `
m=$(uname -m)
[ "$m" = "$3" ] || { printf "\000gompi machine %s\n" "$m"; exit 0; }
[ -f "$1" ] && [ -x "$1" ] && exec "$1" ` + AgentFlag + ` "$2"
umask 077
for d in "${XDG_CACHE_HOME:-$HOME/.cache}" "${TMPDIR:-/tmp}"; do
	d=$d/gompi-$(id -u)
	mkdir -p "$d/$2" 2>/dev/null
	[ -h "$d" ] || { [ -O "$d" ] && [ -w "$d/$2" ] && break; }
	d=
done
[ "$d" ] || { echo "no folder to put gompirun in: want to write to HOME or TMPDIR" >&2; exit 1; }
f=$d/$2/$4
[ -x "$f" ] && exec "$f" ` + AgentFlag + ` "$2"
find "$d" -mindepth 1 -maxdepth 1 -mtime +30 -exec rm -rf {} + 2>/dev/null
printf "\000gompi want\n"
head -c "$5" >"$f.$$" && [ "$(wc -c <"$f.$$")" -eq "$5" ] && chmod 700 "$f.$$" && mv -f "$f.$$" "$f" &&
	exec "$f" ` + AgentFlag + ` "$2"
rm -f "$f.$$"
echo "gompirun could not be put in $d" >&2
exit 1
`

// What a login says before it is an agent: lines that begin so.
const (
	saysWant    = "\x00gompi want"
	saysMachine = "\x00gompi machine "
	saysOther   = "\x00gompi other "
)

// IsOther reports whether the command line args asks for an agent of another build than this one,
// and if so writes that to out.
func IsOther(args []string, out io.Writer) bool {
	if len(args) < 2 || args[0] != AgentFlag || args[1] == build() {
		return false
	}
	fmt.Fprintf(out, "%s%s\n", saysOther, ctl.Version)
	return true
}

// A self is this gompirun, as something to be found on other hosts or sent there.
type self struct {
	path    string // by which it was called
	name    string
	machine string // that it runs on
	build   string
	size    int64
}

// executable is this program, even if its file has been replaced.
const executable = "/proc/self/exe"

func newSelf() (self, error) {
	s := self{build: build()}
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

// calledPath returns the absolute path by which this program was called, links
// and all: another host may have the same link to another place.
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

// build identifies this program, by Go's build ID, which is quick to read, or by a hash of the file
// if it has none.
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
	io.Copy(h, f) // what cannot be read makes another build
	return hex.EncodeToString(h.Sum(nil))
}

// command returns the command line that starts an agent on another host: own, the user's, or if
// that is "" the bootstrap script. With send the script skips the gompirun at our path.
func (s self) command(own string, send bool) string {
	if own != "" {
		return own + " " + AgentFlag
	}
	path := s.path
	if send {
		path = ""
	}
	words := []string{"exec sh -c", cli.Quote(bootstrap), "gompirun"}
	for _, w := range []string{path, s.build, s.machine, s.name, fmt.Sprint(s.size)} {
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

// maxGreeting bounds what a login may print before it is an agent.
const maxGreeting = 64 << 10

// readGreeting reads r up to the end of the first line that begins as ctl.Magic
// does, and returns that line. The login may have printed anything before. It
// reads byte by byte, so as to take nothing from the agent.
func readGreeting(r io.Reader) (string, error) {
	const mark = "\x00gompi "
	var got []byte
	one := make([]byte, 1)
	for len(got) < maxGreeting {
		if _, err := io.ReadFull(r, one); err != nil {
			return "", err
		}
		got = append(got, one[0])
		if at := bytes.Index(got, []byte(mark)); one[0] == '\n' && at >= 0 {
			return string(got[at:]), nil
		}
	}
	return "", fmt.Errorf("it printed %d bytes and is no agent: %.80q", len(got), got)
}
