package mpirun

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gompi/hostfile"
	"gompi/internal/env"
	"gompi/internal/stress"
	"gompi/mpirun/internal/testbed"
)

// TestLinesOfPages runs the indented blocks of README.md and docs/*.md as they stand there, on two
// hosts where root can make them, the blocks of all pages one after the other in one folder. A
// comment directly above a block says why it is left out, or which lines of it are:
//
//	<!-- not run: REASON -->    <!-- not run: BEGINNING, BEGINNING: REASON -->
//	<!-- output -->             <!-- hostfile -->
//
// Of make's lines only the targets are looked up. Tables have tests of their own.
func TestLinesOfPages(t *testing.T) {
	stress.Long(t, "it runs all lines of the pages, for a minute")
	made := false
	t.Run("hosts", func(t *testing.T) {
		bed := testbed.New(t, 2)
		made = true
		t.Setenv("GOMPI_RSH", bed.RSH())
		runPages(t, bed.Addr(1)+" slots=2\n"+bed.Addr(2)+" slots=2\n")
	})
	if !made {
		t.Run("one machine", func(t *testing.T) { runPages(t, "localhost slots=2\n127.0.0.2 slots=2\n") })
	}
}

func runPages(t *testing.T, hosts string) {
	d := newPagesDesk(t, hosts)
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages in docs: %v", len(pages), err)
	}
	for _, page := range append([]string{"../README.md"}, pages...) {
		name := filepath.Base(page)
		if name == "design.md" { // for contributors, with parts of programs
			continue
		}
		if !d.mpi && slices.Contains([]string{"c.md", "mpi.md", "mpi-functions.md"}, name) {
			t.Logf("left out, it needs gcc, mpicc.openmpi and mpicc.mpich: %s", name)
			continue
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		program := ""
		for _, b := range blocksOf(t, name, string(text)) {
			t.Run(fmt.Sprintf("%s:%d", name, b.line), func(t *testing.T) { program = d.do(t, b, program) })
		}
		if program != "" {
			t.Errorf("%s: no block below the program builds it", page)
		}
	}
}

// A pageBlock is an indented block of a page.
type pageBlock struct {
	line int // of the page, from 1
	mark string
	text string
}

var pageMark = regexp.MustCompile(`^ *<!-- (not run: .+|output|hostfile) -->$`)

// blocksOf returns a page's blocks, each with the mark above it.
func blocksOf(t *testing.T, page, text string) (blocks []pageBlock) {
	t.Helper()
	mark, inside := "", false
	for i, line := range strings.Split(text, "\n") {
		m := pageMark.FindStringSubmatch(line)
		code, indented := strings.CutPrefix(line, "    ")
		switch {
		case indented && inside:
			blocks[len(blocks)-1].text += code + "\n"
		case indented:
			blocks, mark, inside = append(blocks, pageBlock{i + 1, mark, code + "\n"}), "", true
		case line == "" && inside && mark == "":
			blocks[len(blocks)-1].text += "\n"
		case mark != "":
			t.Errorf("%s:%d: no block is directly below the mark", page, i)
			mark = ""
		case m != nil:
			mark, inside = m[1], false
		case strings.HasPrefix(line, "```"):
			t.Errorf("%s:%d: want a block indented by four spaces in place of ```", page, i+1)
		default:
			inside = false
		}
	}
	return blocks
}

// commands returns the lines of a block that its mark and missing programs leave.
func (b pageBlock) commands(t *testing.T) (run []string) {
	t.Helper()
	words, _, some := strings.Cut(strings.TrimPrefix(b.mark, "not run: "), ": ")
	all := b.mark != "" && !some // are left out
	leave := map[string]int{}
	for _, w := range strings.Split(words, ", ") {
		leave[w] = 0
	}
	for line := range strings.Lines(b.text) {
		typed, prompt := strings.CutPrefix(line, "$ ")
		out := strings.HasPrefix(b.text, "$ ") && !prompt // of the commands
		for w := range leave {
			if some && strings.HasPrefix(typed, w) {
				leave[w]++
				out = true
			}
		}
		if strings.HasPrefix(typed, "make ") {
			targetsExist(t, typed)
			out = out || !strings.Contains(typed, "&&")
		}
		if out || all {
			continue
		}
		for _, word := range strings.Fields(typed) {
			if _, err := exec.LookPath(word); err != nil && slices.Contains(programsOfOthers, word) {
				t.Logf("left out, there is no %s: %s", word, typed)
				out = true
			}
		}
		if !out {
			run = append(run, typed)
		}
	}
	for w, lines := range leave {
		if some && lines == 0 {
			t.Errorf("no line begins with %q, which the mark leaves out", w)
		}
	}
	return run
}

// programsOfOthers may be missing.
var programsOfOthers = []string{"python3", "openssl", "mpiexec.hydra", "mpirun", "mpifort.openmpi",
	"mpifort.mpich", "nm", "cmake", "valgrind"}

func targetsExist(t *testing.T, line string) {
	t.Helper()
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ = strings.Cut(line, "#")
	line, _, _ = strings.Cut(line, "&&")
	for _, word := range strings.Fields(line)[1:] {
		if !strings.Contains(word, "=") && !strings.Contains(string(makefile), "\n"+word+":") {
			t.Errorf("the Makefile has no target %q, which the page names: %s", word, line)
		}
	}
}

// A pagesDesk is a folder with all files that the pages' lines use.
type pagesDesk struct {
	dir, root string // the checkout is in root
	mpi       bool   // programs of two MPIs are there, and gompi's libraries for them
	places    *strings.Replacer
}

func newPagesDesk(t *testing.T, hosts string) *pagesDesk {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	d := &pagesDesk{dir: t.TempDir(), root: root}
	built := filepath.Join(d.dir, "built")
	d.places = strings.NewReplacer("/path/to/gompi", root, "/shared/folder", filepath.Join(d.dir, "shared"),
		"/usr/local/lib/gompi", built+"/lib", "/usr/local/share/gompi", root+"/mpi/libmpi")
	run := func(script string) {
		t.Helper()
		script = "set -e; root=" + root + "; cd " + d.dir + "\n" + script
		if status, out, errs := runCommand(t, "bash", "-c", script); status != 0 {
			t.Fatalf("%s: status %d\n%s%s", script, status, out, errs)
		}
	}
	for _, keep := range []string{"GOCACHE", "GOMODCACHE"} {
		t.Setenv(keep, strings.TrimSpace(inDir(t, root, "go", "env", keep)))
	}
	t.Setenv("HOME", filepath.Join(d.dir, "home"))
	t.Setenv("XDG_STATE_HOME", filepath.Join(d.dir, "home/state"))
	t.Setenv(env.History, "1") // which make test sets to 0
	for _, allow := range []string{"ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM", "MCA_rmaps_base_oversubscribe"} {
		t.Setenv("OMPI_"+allow, "1") // of Open MPI's mpirun
	}
	t.Setenv("GOPROXY", "off") // gompi was built: all modules are here
	t.Setenv("GOSUMDB", "off")
	onLoopback(t)
	run(`mkdir -p home/.ssh shared bin && ln -s $root/examples .
		cp examples/c/ring.c c.c; cp examples/c/ring.c hello.c
		echo 'cmake_minimum_required(VERSION 3.10)
			project(ring C)
			find_package(MPI REQUIRED COMPONENTS C)
			add_executable(cmade c.c)
			target_link_libraries(cmade MPI::MPI_C)' >CMakeLists.txt
		go build -C $root -o $PWD/bin ./examples/train ./examples/hello
		go build -C $root/bench -o $PWD/bin ./gompi-bench
		for p in mine prog program x; do ln -s bin/hello $p; done
		printf '#!/bin/sh\nexec %s -steps 3 -batch 64 -data %s "$@"\n' \
			$PWD/bin/train $root/examples/train >train && chmod +x train`)
	for name, text := range map[string]string{"hosts": hosts, "two": hosts, "all": hosts, "train.py": torchStandIn} {
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d.mpi = !slices.ContainsFunc([]string{"gcc", "mpicc.openmpi", "mpicc.mpich"}, func(name string) bool {
		_, err := exec.LookPath(name)
		return err != nil
	})
	if d.mpi {
		gompirun, err := buildMPI()
		if err != nil {
			t.Fatal(err)
		}
		run("ln -s " + filepath.Dir(gompirun) + ` built && ln -s $PWD/built/gompi* bin
			mpicc.openmpi -o a.out c.c; mpicc.mpich -o b c.c`)
	} else {
		run("go build -C $root -o $PWD/bin ./mpirun/gompirun")
	}
	t.Setenv("PATH", filepath.Join(d.dir, "bin")+":"+os.Getenv("PATH"))
	return d
}

// What a page says of the output of a line.
var saidOutput = regexp.MustCompile(`#.*(around \d+ ranks: \d+, want \d+)`)

// do runs a block, in a folder of its own if it is below a program, which is there. It returns the
// block if that is a program.
func (d *pagesDesk) do(t *testing.T, b pageBlock, program string) string {
	if strings.HasPrefix(b.text, "package main\n") && b.mark == "" {
		return b.text
	}
	if b.mark == "hostfile" {
		if _, err := hostfile.Parse("the page", strings.NewReader(b.text)); err != nil {
			t.Error(err)
		}
		return program
	}
	lines := b.commands(t)
	if len(lines) == 0 {
		return program
	}
	dir := d.dir
	switch {
	case program != "" && strings.Contains(b.text, "go build"):
		dir = t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o644); err != nil {
			t.Fatal(err)
		}
		program = ""
	case strings.HasPrefix(lines[0], "go doc"):
		dir = d.root
	}
	script := d.places.Replace(strings.Join(lines, ""))
	status, out, errs := runCommand(t, "timeout", "-k", "9", "90", "bash", "-ec", "cd "+dir+"\n"+script)
	if status != 0 {
		t.Errorf("status %d; if it cannot run, want a mark such as <!-- not run: sbatch: no Slurm is here -->\n%s\n%s%s",
			status, script, out, errs)
	}
	for _, m := range saidOutput.FindAllStringSubmatch(script, -1) {
		if !strings.Contains(out, m[1]) {
			t.Errorf("want %q, as the page says:\n%s\n%s", m[1], script, out)
		}
	}
	return program
}
