package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// CoreFile returns the place of the core of a process that ran exe in dir and was killed by a
// signal: a file, or "|" and the program that got the core; "" if there is none.
func CoreFile(pid int, exe, dir string, signal int) string {
	pattern, _ := os.ReadFile("/proc/sys/kernel/core_pattern")
	uses, _ := os.ReadFile("/proc/sys/kernel/core_uses_pid")
	text := strings.TrimSpace(string(pattern))
	if program, piped := strings.CutPrefix(text, "|"); piped {
		program, _, _ = strings.Cut(program, " ")
		return "|" + filepath.Base(program)
	}
	if !strings.Contains(text, "%p") && strings.TrimSpace(string(uses)) == "1" {
		text += ".%p"
	}
	name := coreName(text, pid, exe, signal)
	if dir == "" {
		dir, _ = os.Getwd()
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	found, _ := filepath.Glob(name)
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

var specifier = regexp.MustCompile(`%.`)

// coreName expands the kernel's core_pattern to a pattern of file names, with * for facts that
// are no longer known, such as the time.
func coreName(pattern string, pid int, exe string, signal int) string {
	base := filepath.Base(exe)
	known := map[byte]string{'%': "%", 'p': fmt.Sprint(pid), 's': fmt.Sprint(signal), 'u': fmt.Sprint(os.Getuid()),
		'g': fmt.Sprint(os.Getgid()), 'e': base[:min(len(base), 15)], 'f': base, 'E': strings.ReplaceAll(exe, "/", "!")}
	return specifier.ReplaceAllStringFunc(pattern, func(s string) string {
		if text, ok := known[s[1]]; ok {
			return text
		}
		return "*"
	})
}
