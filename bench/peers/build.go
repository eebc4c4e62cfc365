package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"gompi/bench/internal/runner"
)

// enterMPI prepares a library to run a program, built by its compiler unless installed. The error
// names the missing part.
func (b *Bench) enterMPI(ctx context.Context, name string, p Program) (e runner.Entrant, err error) {
	l := libraries[slices.IndexFunc(libraries, func(l library) bool { return l.name == name })]
	launcher, compiler, err := b.locate(l)
	if err != nil {
		return e, err
	}
	env := l.env(b, filepath.Dir(filepath.Dir(launcher)))
	output, err := runner.Command{Args: []string{launcher, "--version"}, Env: env}.Run(ctx, toolLimit)
	if err == nil && l.try != nil {
		_, err = runner.Command{Args: append([]string{launcher}, l.try...), Env: env}.Run(ctx, toolLimit)
	}
	if err != nil {
		return e, fmt.Errorf("%s does not work here: %w", launcher, err)
	}
	binary := p.Installed
	switch {
	case binary != "" && !l.openMPI || binary == "" && p.C == "" || l.only != "" && l.only != p.C:
		return e, errors.New("there is no such program for it")
	case binary != "":
		env = append(env, folderOf("libmpi.so.40", launcher)...)
	default:
		if binary, err = b.build(ctx, l, compiler, p.C, env); err != nil {
			return e, err
		}
	}
	e = runner.Entrant{Version: versionOf(string(output.Stdout)), Lacks: l.lacks,
		Start: func(np int, args ...string) runner.Job {
			command := slices.Concat([]string{launcher}, l.place(b, np, processors), []string{binary}, p.Args, args)
			return runner.Job{{Args: command, Env: env}}
		}}
	return e, nil
}

// folderOf makes installed programs load a library of the launcher's own installation, unless it is
// in the default path.
func folderOf(library, launcher string) []string {
	dir := filepath.Join(filepath.Dir(filepath.Dir(launcher)), "lib")
	if _, err := os.Stat(filepath.Join(dir, library)); err != nil {
		return nil
	}
	return []string{"LD_LIBRARY_PATH=" + dir}
}

// locate finds the launcher and the compiler of a library.
func (b *Bench) locate(l library) (launcher, compiler string, err error) {
	at := strings.NewReplacer("VENV", b.Venvs, "GOMPIRUN", b.Gompirun)
	for i := range l.launchers {
		launcher, err = exec.LookPath(at.Replace(l.launchers[i]))
		if err != nil {
			continue
		}
		if compiler, err = exec.LookPath(at.Replace(l.compilers[i])); err != nil {
			return "", "", fmt.Errorf("%s is here, but not its compiler %s (%s)", launcher, l.compilers[i], l.needs)
		}
		launcher, err = filepath.Abs(launcher)
		return launcher, compiler, err
	}
	return "", "", fmt.Errorf("not installed (%s)", l.needs)
}

// versionOf returns the first word of a launcher's version output that looks like a version number.
func versionOf(text string) string {
	for _, word := range strings.Fields(text) {
		word = strings.TrimSuffix(word, ",")
		if strings.Count(word, ".") >= 1 && strings.Trim(word, "0123456789.rcab") == "" && word[0] >= '0' &&
			word[0] <= '9' {
			return word
		}
	}
	return "of unknown version"
}

// build compiles a program with the library's compiler and returns its path.
func (b *Bench) build(ctx context.Context, l library, compiler, program string, env []string) (string, error) {
	key := strings.TrimSuffix(program, ".c") + "." + l.name
	if binary, ok := b.built[key]; ok {
		return binary, nil
	}
	binary := filepath.Join(b.dir, key)
	args := slices.Concat([]string{compiler, "-O2", "-o", binary}, l.flags,
		[]string{filepath.Join(b.dir, program), "-lm"})
	for _, flag := range l.link {
		args = append(args, strings.Replace(flag, "SRC", b.dir, 1))
	}
	if _, err := (runner.Command{Args: args, Env: env}).Run(ctx, toolLimit); err != nil {
		return "", fmt.Errorf("%s does not compile %s: %w", compiler, program, err)
	}
	b.built[key] = binary
	return binary, nil
}
