package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A line is a line of a list of tests: a program, its number of ranks, and settings.
type line struct {
	dir, text string
	program   string
	ranks     int
	args, env []string
	limit     time.Duration // 0 if the line has none
	status    bool          // the program is to end with a status other than 0
	memory    float64       // GiB that all ranks together need
}

// mark is before lines that MPICH's configure may leave out.
var mark = regexp.MustCompile(`^@\w+@`)

// words are marks that configure makes lines of.
var words = strings.NewReplacer("@iodir@", "io", "@rmadir@", "rma", "@ALLOCMEMF@", "allocmemf 1", "@ALLOCMEMFC@",
	"allocmemf90 1")

// readLines returns the lines of the lists of directories, and of the lists named in them.
func (s *suite) readLines(dirs []string) (all []line, err error) {
	for _, dir := range dirs {
		file := filepath.Join(s.source, dir, "testlist.in")
		text, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			file = filepath.Join(s.source, dir, "testlist")
			text, err = os.ReadFile(file)
		}
		if err != nil {
			return nil, err
		}
		for _, t := range strings.Split(words.Replace(string(text)), "\n") {
			t = strings.TrimSpace(mark.ReplaceAllString(strings.TrimSpace(t), ""))
			if t == "" || t[0] == '#' {
				continue
			}
			if below := path.Join(dir, t); s.isFolder(below) {
				lines, err := s.readLines([]string{below})
				if err != nil {
					return nil, err
				}
				all = append(all, lines...)
				continue
			}
			l, err := parseLine(dir, t)
			if err != nil {
				return nil, fmt.Errorf("%s: %q: %w", file, t, err)
			}
			all = append(all, l)
		}
	}
	return all, nil
}

func (s *suite) isFolder(dir string) bool {
	st, err := os.Stat(filepath.Join(s.source, dir))
	return err == nil && st.IsDir()
}

func parseLine(dir, text string) (l line, err error) {
	fields := strings.Fields(text)
	l = line{dir: dir, text: strings.Join(fields, " "), program: fields[0], ranks: 1}
	if len(fields) > 1 {
		if l.ranks, err = strconv.Atoi(fields[1]); err != nil {
			return l, err
		}
		fields = fields[1:]
	}
	for _, f := range fields[1:] {
		key, value, _ := strings.Cut(f, "=")
		switch key {
		case "arg":
			l.args = append(l.args, value)
		case "env":
			l.env = append(l.env, value)
		case "timeLimit":
			seconds, err := strconv.Atoi(value)
			if err != nil {
				return l, err
			}
			l.limit = time.Duration(seconds) * time.Second
		case "resultTest":
			l.status = value == "TestStatus" || value == "TestErrFatal"
		case "mem":
			if l.memory, err = strconv.ParseFloat(value, 64); err != nil {
				return l, err
			}
		}
	}
	return l, nil
}
