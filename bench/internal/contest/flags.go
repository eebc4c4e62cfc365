package contest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"gompi/bench/internal/limits"
	"gompi/internal/atomicfile"
	"gompi/internal/cli"
)

// Flags are the values of the flags that the programs have in common. Declare them, parse the
// command line, then call Read.
type Flags struct {
	Plan               // of it Rounds, NPs and Limit
	HostNames []string // other hosts to run on; none: this machine
	RSH       []string // the command that logs in to them
	Gompirun  string   // path
	CSV, HTML string   // files

	Link      limits.LinkFlag // of each of the hosts
	Transport string          // that gompi is to use; "": its own choice
	Bench     string          // path of gompi-bench

	np, hostfile, rsh string
}

// Declare declares the flags of every program. np and limit are defaults; each tells what -limit
// bounds.
func (f *Flags) Declare(s *cli.Set, np string, limit time.Duration, each string) {
	f.Rounds, f.Limit = 5, limit
	s.StringVar(&f.np, "np", np, "numbers of ranks")
	s.Var((*cli.Count)(&f.Rounds), "rounds", "how often everything is measured")
	s.Var((*cli.Duration)(&f.Limit), "limit", "how long one "+each)
	s.StringVar(&f.hostfile, "hostfile", "", "other hosts to run on; ranks are dealt out evenly")
	s.StringVar(&f.rsh, "rsh", "ssh", "the command that logs in to them")
	s.StringVar(&f.Gompirun, "gompirun", Beside("gompirun"), "the launcher")
	s.StringVar(&f.HTML, "html", "", "page with plots to add the medians to; made if there is none")
}

// DeclareBench declares the flags of the programs that run gompi-bench.
func (f *Flags) DeclareBench(s *cli.Set) {
	s.Var(&f.Link, "link", limits.LinkUsage)
	s.StringVar(&f.Transport, "transport", "", "what gompi is to use (default its own choice)")
	s.StringVar(&f.Bench, "bench", Beside("gompi-bench"), "gompi's benchmark")
	s.StringVar(&f.CSV, "csv", "", "file for every row of every round, behind a comment that names the machine")
}

// Read reads the values of -np, -hostfile and -rsh, and looks whether the files can be written.
func (f *Flags) Read() error {
	var errNP, errHosts, errRSH error
	f.NPs, errNP = Numbers("-np", f.np)
	switch {
	case f.hostfile != "":
		f.HostNames, errHosts = HostNames(f.hostfile)
	case f.Link.Rate > 0:
		errHosts = fmt.Errorf("-link %v: want -hostfile, too", &f.Link)
	}
	if f.RSH = strings.Fields(f.rsh); len(f.RSH) == 0 {
		errRSH = fmt.Errorf("-rsh %q: want a command", f.rsh)
	}
	return errors.Join(errNP, errHosts, errRSH, atomicfile.Check(f.CSV), atomicfile.Check(f.HTML))
}

// Even returns an error unless every host gets as many ranks.
func (f *Flags) Even() error {
	for _, np := range f.NPs {
		if n := len(f.HostNames); n > 0 && np%n != 0 {
			return fmt.Errorf("-np %d on %d hosts: want as many ranks on each", np, n)
		}
	}
	return nil
}

// Env is what the flags set in the environment of gompi's ranks.
func (f *Flags) Env() []string {
	if f.Transport == "" {
		return nil
	}
	return []string{"GOMPI_TRANSPORT=" + f.Transport}
}

// Links returns what joins the hosts, of which there are some, if np ranks run on them.
func (f *Flags) Links(np int) limits.Link {
	l := f.Link.Link
	l.Hosts, l.Ranks = len(f.HostNames), np/len(f.HostNames)
	return l
}

// OnHosts says on which other hosts is measured, "" if on none.
func (f *Flags) OnHosts() string {
	if len(f.HostNames) == 0 {
		return ""
	}
	text := fmt.Sprintf("%d other hosts, by %s", len(f.HostNames), strings.Join(f.RSH, " "))
	if f.Link.Rate > 0 {
		text += fmt.Sprintf("; the link of each carries %v each way", &f.Link)
	}
	return text
}

// Title returns the title of a section of the program called name: it has what tells one comparison
// from another. Of more, "" is left out.
func (f *Flags) Title(name string, more ...string) string {
	title := fmt.Sprintf("%s, %s ranks", name, strings.Trim(strings.ReplaceAll(fmt.Sprint(f.NPs), " ", ", "), "[]"))
	hosts := When(len(f.HostNames) > 0, fmt.Sprintf("%d hosts", len(f.HostNames)))
	for _, text := range append([]string{hosts, f.Link.String(), f.Transport}, more...) {
		title += When(text != "", ", "+text)
	}
	return title
}

// When returns text if so, else "".
func When(so bool, text string) string {
	if so {
		return text
	}
	return ""
}
