package program

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestFindLooksWhereExecvpDoes(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, mode os.FileMode) {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	write("a/prog", 0o755)
	write("b/prog", 0o755)
	write("a/plain", 0o644)
	write("b/late", 0o755)
	write("a/late", 0o644)
	write("here", 0o755)
	path := dir + "/none:" + dir + "/a:" + dir + "/b"
	tests := []struct {
		name, path string
		want       string
		is         error
	}{
		{"prog", path, dir + "/a/prog", nil},
		{"late", path, dir + "/b/late", nil},
		{"plain", path, "", syscall.EACCES},
		{"nosuch", path, "", syscall.ENOENT},
		{"here", path, "", syscall.ENOENT},
		{"here", "", "", syscall.ENOENT},
		{"here", "x::y", "./here", nil},
		{"prog", "b", "b/prog", nil},
		{"./here", "", "./here", nil},
		{"a", path, "", syscall.ENOENT},
	}
	for _, tt := range tests {
		got, err := Find(tt.name, dir, tt.path)
		if got != tt.want || !errors.Is(err, tt.is) {
			t.Errorf("Find(%q) in PATH %q = %q, %v; want %q, %v", tt.name, tt.path, got, err, tt.want, tt.is)
		}
	}
	if _, err := Find("here", dir, path); !strings.Contains(err.Error(), "want ./here") {
		t.Errorf("error %q does not say how to run a program of the working directory", err)
	}
}

func TestStatusDistinguishesMissingFromForbidden(t *testing.T) {
	tests := map[error]int{
		syscall.EPERM: 125, syscall.ENOENT: 125, errors.New("x"): 125, // of something else than the program
	}
	for errno, want := range map[syscall.Errno]int{
		syscall.ENOENT: 127, syscall.ENOTDIR: 127, syscall.EACCES: 126, syscall.ENOEXEC: 126, syscall.EPERM: 126,
		syscall.EAGAIN: 125,
	} {
		p := &Program{Path: "/none", Argv: []string{"none"}}
		tests[fmt.Errorf("first: %w", p.StartError(errno))] = want
	}
	for err, want := range tests {
		if got := Status(err); got != want {
			t.Errorf("Status(%v) = %d, want %d", err, got, want)
		}
	}
}

func TestWhatIsWrongWithAProgramIsReported(t *testing.T) {
	dir := t.TempDir()
	for name, tt := range map[string]struct{ content, want string }{
		"script":  {"echo\n", `cannot run "p": exec format error (no #! line? A script begins with one, like #!/bin/sh)`},
		"empty":   {"", `cannot run "p": exec format error (it is empty)`},
		"foreign": {"\x7fELF\x02", `cannot run "p": exec format error (it is for another kind of machine)`},
		"loader":  {"#!/none/sh\n", `cannot run "p": it is there, but not the interpreter "/none/sh" of its #! line: no such file or directory`},
		"windows": {"#!/bin/sh\r\n", `cannot run "p": it is there, but not the interpreter "/bin/sh\r" of its #! line, which ends in a carriage return, as Windows writes it (sed -i 's/\r$//' p takes these away): no such file or directory`},
		"folder":  {"", `cannot run "p": is a directory`},
	} {
		file := filepath.Join(dir, name)
		err := os.WriteFile(file, []byte(tt.content), 0o755)
		if name == "folder" {
			os.Remove(file)
			err = os.Mkdir(file, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		pid, err := syscall.ForkExec(file, []string{"p"}, nil)
		if err == nil {
			syscall.Wait4(pid, nil, 0, nil)
			t.Skipf("%s runs", name)
		}
		p := &Program{Path: file, Argv: []string{"p"}}
		if got := p.StartError(err).Error(); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// A script that Python does not find is one error before the ranks start, and not one of each.
func TestAMissingScriptIsFoundBeforePythonRuns(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "here.py"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for line, missing := range map[string]string{
		"python3 -u none.py a": "none.py", "python3.11 /none/x": "/none/x",
		"/usr/bin/python3 -W error -um gompi_torch none.py": "",
		"python3 -u -m gompi_torch none.py":                 "none.py", "python3 -m gompi_torch -m none": "",
		"python3 -X dev -W ignore none.py": "none.py",
		"python3 -Xdev none.py":            "none.py", "python3 here.py none.py": "", "python3 -c none.py": "",
		"python3 -m none.py": "", "python3": "",
		"python3 - none.py": "", "python3 --version none.py": "", "python3 -W": "", "bash none.py": "",
		"pythonx none.py": "",
	} {
		p := &Program{Argv: strings.Fields(line), Dir: dir}
		err := p.missingScript()
		if (err != nil) != (missing != "") ||
			err != nil && (!strings.Contains(err.Error(), strconv.Quote(missing)) || Status(err) != notFound) {
			t.Errorf("%s: %v, want that %q is missing", line, err, missing)
		}
	}
}

// Only regular files are opened, because opening others could take forever.
func TestAFIFOIsNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o700); err != nil {
		t.Fatal(err)
	}
	p := &Program{Path: path, Argv: []string{path}}
	read := make(chan error)
	go func() {
		p.Touch()
		read <- p.chooseMPI("", "", 2)
	}()
	select {
	case err := <-read:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("a FIFO is waited for")
	}
}
