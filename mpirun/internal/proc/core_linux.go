package proc

import (
	"fmt"
	"os"
	"path/filepath"
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

// coreName expands the kernel's core_pattern to a pattern of file names, with * for facts that
// are no longer known, such as the time.
func coreName(pattern string, pid int, exe string, signal int) string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' || i+1 == len(pattern) {
			b.WriteByte(pattern[i])
			continue
		}
		switch i++; pattern[i] {
		case '%':
			b.WriteByte('%')
		case 'p':
			fmt.Fprint(&b, pid)
		case 's':
			fmt.Fprint(&b, signal)
		case 'u':
			fmt.Fprint(&b, os.Getuid())
		case 'g':
			fmt.Fprint(&b, os.Getgid())
		case 'e', 'f':
			name := filepath.Base(exe)
			if pattern[i] == 'e' {
				name = name[:min(len(name), 15)] // the kernel's comm
			}
			b.WriteString(name)
		case 'E':
			b.WriteString(strings.ReplaceAll(exe, "/", "!"))
		default:
			b.WriteByte('*')
		}
	}
	return b.String()
}
