package program

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"gompi/mpirun/internal/cmdline"
)

// Exit statuses for ranks that could not be started, as in shells.
const (
	CannotStart   = 125
	notExecutable = 126
	notFound      = 127
)

// A cannotRun is an error of starting a program that is due to its file alone.
type cannotRun struct{ error }

func (e cannotRun) Unwrap() error { return e.error }

// A Program is the program of some ranks on this host.
type Program struct {
	Path string   // of its file, relative to Dir
	Argv []string // as given by the user
	Dir  string   // the working directory, "" for this process's
	Env  []string // of all its ranks
}

// Find returns the path of the program called name, as execvp would find it in the folders of
// path from the directory wdir.
func Find(name, wdir, path string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil // exec itself reports errors
	}
	var denied error
	for _, dir := range filepath.SplitList(path) {
		if dir == "" {
			dir = "."
		}
		candidate := dir + "/" + name
		at := candidate
		if !filepath.IsAbs(at) {
			at = filepath.Join(wdir, at)
		}
		if st, err := os.Stat(at); err != nil || st.IsDir() {
			continue
		}
		if unix.Access(at, unix.X_OK) == nil {
			return candidate, nil
		}
		denied = cannotRun{fmt.Errorf("cannot run %q: %s: %w", name, at, syscall.EACCES)}
	}
	if denied != nil {
		return "", denied
	}
	hint := ""
	if st, err := os.Stat(filepath.Join(wdir, name)); err == nil && !st.IsDir() {
		hint = fmt.Sprintf("; there is one in the working directory: want ./%s", name)
	}
	return "", cannotRun{fmt.Errorf("cannot find %q in PATH%s: %w", name, hint, syscall.ENOENT)}
}

// Touch reads the files that the kernel reads to start p: its directory, the beginning of its
// file and, for a script, of its interpreter. Touch may run in the background, and on a file
// system that does not answer Touch blocks instead of the start. A blocked start would stop this
// whole process, because its thread waits for exec and Go waits for the thread.
func (p *Program) Touch() {
	os.Stat(cmp.Or(p.Dir, "."))
	name := p.file()
	for range scriptDepth {
		interpreter, script := strings.CutPrefix(head(name), "#!")
		words := strings.Fields(interpreter)
		if !script || len(words) == 0 {
			return
		}
		if name = words[0]; !filepath.IsAbs(name) {
			name = filepath.Join(p.Dir, name)
		}
	}
}

const (
	scriptDepth = 5   // most scripts that interpret scripts, as in Linux
	scriptLine  = 256 // bytes that Linux reads to find out how to run a file
)

// head returns the first line of a file, "" if reading fails.
func head(name string) string {
	if !isFile(name) {
		return ""
	}
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	begin := make([]byte, scriptLine)
	n, _ := f.Read(begin)
	line, _, _ := strings.Cut(string(begin[:n]), "\n")
	return line
}

// file returns the path of p's file for this process.
func (p *Program) file() string {
	if filepath.IsAbs(p.Path) {
		return p.Path
	}
	return filepath.Join(p.Dir, p.Path)
}

// StartError explains the kernel's error of starting p.
func (p *Program) StartError(err error) error {
	st, missing := os.Stat(p.file())
	switch {
	case errors.Is(err, syscall.ENOENT) && missing == nil:
		err = fmt.Errorf("it is there, but not %s: %w", p.missingInterpreter(), err)
	case errors.Is(err, syscall.EACCES) && missing == nil && st.IsDir():
		err = syscall.EISDIR
	case errors.Is(err, syscall.ENOEXEC):
		err = fmt.Errorf("%w (%s)", err, p.format())
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.EMFILE),
		errors.Is(err, syscall.ENFILE):
		return fmt.Errorf("cannot start %q: %w", p.Argv[0], err) // the machine's limits, not the program
	}
	return cannotRun{fmt.Errorf("cannot run %q: %w", p.Argv[0], err)}
}

// missingInterpreter returns the interpreter or loader named by p's file, with the likely reason
// of its absence.
func (p *Program) missingInterpreter() string {
	line := head(p.file())
	if words := strings.Fields(strings.TrimPrefix(line, "#!")); strings.HasPrefix(line, "#!") && len(words) > 0 {
		if strings.HasSuffix(line, "\r") {
			return fmt.Sprintf(`the interpreter %q of its #! line, which ends in a carriage return, as Windows writes it (sed -i 's/\r$//' %s takes these away)`,
				words[0]+"\r", p.Argv[0])
		}
		return fmt.Sprintf("the interpreter %q of its #! line", words[0])
	}
	if f, err := elf.Open(p.file()); err == nil {
		defer f.Close()
		for _, part := range f.Progs {
			name := make([]byte, min(part.Filesz, scriptLine))
			if n, err := part.ReadAt(name, 0); part.Type == elf.PT_INTERP && err == nil {
				return fmt.Sprintf("the loader %q that it asks for", strings.TrimRight(string(name[:n]), "\x00"))
			}
		}
	}
	return "the interpreter or loader that it asks for"
}

// missingScript returns an error if p is a Python script that does not exist, which otherwise
// every rank would report.
func (p *Program) missingScript() error {
	name, module := cmdline.Script(p.Argv)
	if name == "" || module {
		return nil
	}
	at := name
	if !filepath.IsAbs(at) {
		at = filepath.Join(p.Dir, at)
	}
	if _, err := os.Stat(at); !errors.Is(err, syscall.ENOENT) {
		return nil // Python reports other errors
	}
	if p.Dir != "" && !filepath.IsAbs(name) {
		return cannotRun{fmt.Errorf("cannot run %q in %s: %w", name, p.Dir, syscall.ENOENT)}
	}
	return cannotRun{fmt.Errorf("cannot run %q: %w", name, syscall.ENOENT)}
}

// format returns a likely reason why the kernel cannot run a file.
func (p *Program) format() string {
	begin := make([]byte, 4)
	f, err := os.Open(p.file())
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	switch n, _ := f.Read(begin); {
	case n == 0:
		return "it is empty"
	case string(begin[:n]) == elf.ELFMAG:
		return "it is for another kind of machine"
	}
	return "no #! line? A script begins with one, like #!/bin/sh"
}

// Status returns the exit status for err.
func Status(err error) int {
	var file cannotRun
	switch {
	case !errors.As(err, &file):
		return CannotStart
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENOTDIR):
		return notFound
	}
	return notExecutable
}
