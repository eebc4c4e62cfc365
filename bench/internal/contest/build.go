package contest

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gompi/bench"
)

// toolLimit bounds how long a compiler, or a launcher that is asked for its
// version, may take.
const toolLimit = time.Minute

// A Workshop builds our C programs for the libraries that are here, each once,
// in a folder of its own.
type Workshop struct {
	dir   string
	built map[string]string // path of a program by library and name
}

// NewWorkshop makes the folder; Close removes it.
func NewWorkshop() (*Workshop, error) {
	dir, err := os.MkdirTemp("", "gompi-peers-")
	if err != nil {
		return nil, err
	}
	if err := unpack(dir); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return &Workshop{dir: dir, built: make(map[string]string)}, nil
}

// Close removes all that was built.
func (w *Workshop) Close() error { return os.RemoveAll(w.dir) }

// Dir returns the folder, where others may put files for programs to read.
func (w *Workshop) Dir() string { return w.dir }

func unpack(dir string) error {
	return fs.WalkDir(bench.Peers, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := bench.Peers.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, path.Base(name)), text, 0o600)
	})
}

// Enter makes c ready to run program, mpibench or mpihello. The error says what
// is missing if its library is not here.
func (w *Workshop) Enter(ctx context.Context, c Competitor, program string) (Entrant, error) {
	tools, version, err := locate(ctx, c.Library)
	if err != nil {
		return Entrant{}, err
	}
	if err := c.hasComponent(ctx); err != nil {
		return Entrant{}, err
	}
	binary, err := w.build(ctx, c.Library.Name, tools.Compiler, program)
	if err != nil {
		return Entrant{}, err
	}
	return Entrant{
		Name: c.Name, Version: version,
		launcher: tools.Launcher, place: c.Library.Place, over: c.Library.Over, flags: c.Flags,
		program: []string{binary}, env: c.Env,
	}, nil
}

// hasComponent asks ompi_info for the component that c is made of, if any.
func (c Competitor) hasComponent(ctx context.Context) error {
	if c.Component == "" {
		return nil
	}
	out, err := Command{Args: []string{"ompi_info"}}.Run(ctx, toolLimit)
	if err == nil && !strings.Contains(string(out.Stdout), "MCA coll: "+c.Component+" ") {
		err = fmt.Errorf("this Open MPI has no component coll/%s", c.Component)
	}
	return err
}

// WithArgs returns e with arguments that its program always gets.
func (e Entrant) WithArgs(args ...string) Entrant {
	e.program = slices.Concat(e.program, args)
	return e
}

// locate finds the tools of a library and its version.
func locate(ctx context.Context, l Library) (Tools, string, error) {
	broken := ""
	for _, tools := range l.Tools {
		if _, err := exec.LookPath(tools.Launcher); err != nil {
			continue
		}
		out, err := Command{Args: []string{tools.Launcher, "--version"}}.Run(ctx, toolLimit)
		if err != nil {
			broken = fmt.Sprintf(", or %s does not work here: %v", tools.Launcher, err)
		}
		if err != nil || !strings.Contains(string(out.Stdout), l.Says) {
			continue
		}
		if _, err := exec.LookPath(tools.Compiler); err != nil {
			return Tools{}, "", fmt.Errorf("%s is here, but not %s (Debian: apt-get install %s)", tools.Launcher, tools.Compiler, l.Needs)
		}
		if l.Try != nil {
			if _, err := (Command{Args: append([]string{tools.Launcher}, l.Try...)}).Run(ctx, toolLimit); err != nil {
				return Tools{}, "", fmt.Errorf("%s does not work here: %w", tools.Launcher, err)
			}
		}
		return tools, versionOf(string(out.Stdout)), nil
	}
	return Tools{}, "", fmt.Errorf("not installed (Debian: apt-get install %s)%s", l.Needs, broken)
}

// versionOf returns the first word of what a launcher says of itself that looks
// like a version number.
func versionOf(text string) string {
	for _, word := range strings.Fields(text) {
		if strings.Count(word, ".") >= 1 && strings.Trim(word, "0123456789.rcab") == "" && word[0] >= '0' && word[0] <= '9' {
			return word
		}
	}
	return "of unknown version"
}

// build compiles program with the library's compiler, links it with more libraries, and returns its
// path.
func (w *Workshop) build(ctx context.Context, library, compiler, program string, link ...string) (string, error) {
	key := program + "." + library
	if binary, ok := w.built[key]; ok {
		return binary, nil
	}
	binary := filepath.Join(w.dir, key)
	args := []string{compiler, "-O2", "-o", binary, filepath.Join(w.dir, program+".c")}
	cc := Command{Args: append(args, link...)}
	if _, err := cc.Run(ctx, toolLimit); err != nil {
		return "", fmt.Errorf("%s does not compile %s.c: %w", compiler, program, err)
	}
	w.built[key] = binary
	return binary, nil
}
