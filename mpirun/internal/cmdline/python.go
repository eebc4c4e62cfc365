package cmdline

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var pythonName = regexp.MustCompile(`^python[0-9.]*$`)

// IsPython reports whether a command line runs Python, or directly a Python script.
func IsPython(argv []string) bool {
	return len(argv) > 0 && (pythonName.MatchString(filepath.Base(argv[0])) || strings.HasSuffix(argv[0], ".py"))
}

// ranByPython returns the index of Python's script in argv, or of the -m before its module; 0 if
// argv runs neither.
func ranByPython(argv []string) int {
	if len(argv) == 0 || !pythonName.MatchString(filepath.Base(argv[0])) {
		return 0
	}
	for i := 1; i < len(argv); i++ {
		a := argv[i]
		if a == "-m" || !strings.HasPrefix(a, "-") {
			return i
		}
		values, ok := flagOfPython(a)
		if !ok {
			return 0
		}
		i += values
	}
	return 0
}

// flagOfPython returns the number of values after a flag of Python, or after several in one word.
// ok is false if the flag is unknown or runs something by itself.
func flagOfPython(a string) (values int, ok bool) {
	if a == "--check-hash-based-pycs" {
		return 1, true
	}
	for i, letter := range a[1:] {
		switch letter {
		case 'W', 'X':
			if i == len(a)-2 {
				return 1, true
			}
			return 0, true // the value is the rest
		case 'c', 'm', '-':
			return 0, false
		}
	}
	return 0, len(a) > 1
}

// runners are modules that run a script, or a module after -m.
var runners = []string{"gompi_torch", "mpi4py", "mpi4py.futures"}

// Script returns the Python script or module that a command line runs, "" if it runs neither.
func Script(argv []string) (name string, module bool) {
	i := ranByPython(argv)
	if i == 0 {
		return "", false
	}
	rest := argv[i:]
	if len(rest) > 2 && rest[0] == "-m" && slices.Contains(runners, rest[1]) &&
		(rest[2] == "-m" || !strings.HasPrefix(rest[2], "-")) {
		rest = rest[2:]
	}
	if rest[0] != "-m" {
		return rest[0], false
	}
	if len(rest) == 1 {
		return "", false
	}
	return rest[1], true
}

// throughTorch makes a Python command line run its script or module by gompi_torch, as torch
// before 2.5 requires.
func throughTorch(argv []string) []string {
	i := ranByPython(argv)
	if i == 0 || slices.Equal(argv[i:min(i+2, len(argv))], []string{"-m", "gompi_torch"}) {
		return argv
	}
	return slices.Insert(slices.Clone(argv), i, "-m", "gompi_torch")
}
