// Command share writes manual pages and the shells' completions of gompirun's command line. Its
// sources are the declared flags of gompirun, the texts of gompi-bench -h and gompicc -help, and
// the doc comment of package hostfile:
//
//	share FOLDER GOMPI-BENCH
//	share FOLDER GOMPICC
//
// The second argument is a program to run. With GOMPICC only gompicc's own pages are written,
// because not everybody builds it. make install puts the files where man, bash, zsh and fish
// look.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gompi/mpirun/internal/manual"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: share FOLDER GOMPI-BENCH, or GOMPICC")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "share:", err)
		os.Exit(1)
	}
}

func write(folder, program string) error {
	all, err := filesWith(program)
	if err != nil {
		return err
	}
	for name, text := range all {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// filesWith returns the files made from the texts of a program: gompicc's own, or, with
// gompi-bench, all others.
func filesWith(program string) (map[string]string, error) {
	if filepath.Base(program) == "gompicc" {
		return gompiccPages(program)
	}
	all := manual.Files()
	var err1, err2 error
	all["man/man1/gompi-bench.1"], err1 = benchPage(program)
	all["man/man5/gompi-hostfile.5"], err2 = hostfilePage()
	return all, errors.Join(err1, err2)
}

// cutUsage cuts a text of another program's -h into the command lines at its beginning, its
// first paragraph, and its lists, which stay as they are.
func cutUsage(text string) (synopsis []string, about string, lists []string) {
	usage, text, _ := strings.Cut(strings.TrimSuffix(text, "\n"), "\n\n")
	for line := range strings.Lines(strings.TrimPrefix(usage, "usage:")) {
		synopsis = append(synopsis, strings.TrimSpace(line))
	}
	about, text, _ = strings.Cut(text, "\n\n")
	return synopsis, about, strings.Split(text, "\n")
}
