package cli

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// A Habit is a flag of another launcher that this one lacks. It is translated, ignored with one
// line, or refused with one line that names a replacement.
type Habit struct {
	Names []string // without dashes
	Args  int      // number of arguments

	// To translates the flag to flags of this launcher. An empty list means that this launcher
	// always behaves so. If To is nil or returns nil, the flag is ignored with the reason Why, or
	// refused with the advice Instead.
	To      func(args []string) []string
	Why     string
	Instead string

	// May reports whether a following word is a further argument, beside Args; nil for none.
	May func(word string) bool

	// Pair means that its two arguments may be one word: NAME=VALUE.
	Pair bool

	// Parameter marks the flag that sets an MCA parameter, a name and a value.
	Parameter bool

	// Grant marks a flag that requests hosts or their resources from a scheduler. It belongs to the
	// command that submits the job. To is its translation inside a job, if any.
	Grant bool
}

// Habits declares the flags of other launchers. table is called only if a line may have one,
// because most lines have none. note is called once for each ignored Habit on a line, with a
// complete line.
func (s *Set) Habits(table func() []Habit, note func(line string)) {
	s.note = note
	s.habits = sync.OnceValue(func() map[string]Habit {
		habits := make(map[string]Habit)
		for _, h := range table() {
			for _, name := range h.Names {
				habits[name] = h
			}
		}
		return habits
	})
}

// usedHabits collects the notes on the habits on one command line.
type usedHabits struct {
	set    *Set
	asSrun bool // letters have srun's meaning
	lines  []*habitLine
	asks   bool       // grant has a flag known to schedulers alone
	grant  []string   // requests to a scheduler, as typed
	inJob  []string   // their translation inside a job
	kept   []keptFlag // the other flags
	params []typedParameter
}

type keptFlag struct {
	name  string   // its long name, even if a short one was typed
	value string   // "" if it has none
	words []string // as typed
}

func (u *usedHabits) keep(name, value string, words ...string) {
	u.kept = append(u.kept, keptFlag{name: name, value: value, words: words})
}

type habitLine struct {
	why  string
	args []string // the first argument of each use
	name string   // as typed
}

// take returns args without the arguments of h, or with the translation of h.
func (u *usedHabits) take(h Habit, name, arg, value string, inArg bool, args []string) ([]string, error) {
	var own []string
	if inArg {
		own = append(own, value)
	}
	words := []string{arg}
	for len(own) < h.Args && !(h.Pair && len(own) == 1 && strings.Contains(own[0], "=")) {
		if len(args) == 0 {
			return nil, fmt.Errorf("-%s needs %s: %d given", name, countOf(h.Args, "value"), len(own))
		}
		if u.set.isFlag(args[0]) {
			hint := ""
			if h.Pair && len(own) == 1 {
				hint = fmt.Sprintf("; if it is meant, type -%s %s=%s", name, own[0], args[0])
			}
			return nil, fmt.Errorf("-%s needs %s%s%s", name, countOf(h.Args, "value"), insteadOf(args), hint)
		}
		own, words, args = append(own, args[0]), append(words, args[0]), args[1:]
	}
	if h.May != nil && !inArg && len(args) > 0 && h.May(args[0]) {
		own, words, args = append(own, args[0]), append(words, args[0]), args[1:]
	}
	if h.Parameter {
		u.params = append(u.params, typedParameter{name, own[0], own[1]})
		return args, nil
	}
	if h.Grant {
		u.asks = u.asks || srunLetters[name] == ""
		u.grant = append(u.grant, words...)
		if h.To != nil {
			u.inJob = append(u.inJob, h.To(own)...)
		}
		return args, nil
	}
	if h.To != nil {
		if to := h.To(own); to != nil {
			return append(to, args...), nil
		}
	}
	if h.Instead != "" {
		return nil, fmt.Errorf("-%s: %s", strings.Join(append([]string{name}, own...), " "), h.Instead)
	}
	u.ignore(h, name, own)
	return args, nil
}

func countOf(n int, what string) string {
	if n == 1 {
		return "a " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (u *usedHabits) ignore(h Habit, name string, own []string) {
	i := slices.IndexFunc(u.lines, func(l *habitLine) bool { return l.name == name })
	if i < 0 {
		i = len(u.lines)
		u.lines = append(u.lines, &habitLine{name: name, why: h.Why})
	}
	if len(own) > 0 {
		u.lines[i].args = append(u.lines[i].args, own[0])
	}
}

func (u *usedHabits) report() {
	for _, l := range u.lines {
		line := fmt.Sprintf("%s: -%s is ignored: %s", u.set.Name(), l.name, l.why)
		if len(l.args) > 0 {
			line += " (" + strings.Join(l.args, ", ") + ")"
		}
		u.set.note(line)
	}
}

// misplaced is the error for requests to a scheduler, with lines to type instead. rest is the
// program.
func (u *usedHabits) misplaced(rest []string) error {
	name, asked := u.set.Name(), strings.Join(u.grant, " ")
	var job, own, inJob []string
	for _, k := range u.kept {
		inJob = append(inJob, k.words...)
		if k.name == "nnodes" {
			job = append(job, "-N"+strings.Replace(k.value, ":", "-", 1))
		} else {
			own = append(own, k.words...)
		}
	}
	line := func(words ...[]string) string { return Line(slices.Concat(words...)...) }
	self := []string{name}
	return fmt.Errorf("%s: hosts, and what they have, are given to a job when it is made. Type: %s; or, inside a job: %s",
		asked, line([]string{"salloc"}, job, u.grant, self, own, rest), line(self, inJob, u.inJob, rest))
}

// LauncherHabits returns the flags of Open MPI's mpirun, hydra, Intel's mpiexec, torchrun and
// srun that gompirun lacks. The Set must have the flags of their translations.
func LauncherHabits() []Habit {
	habits := slices.Concat(openMPIHabits(), openMPI5Habits(), hydraHabits(), torchHabits(), srunHabits())
	for flag, names := range synonyms {
		to := func(args []string) []string { return []string{flag, args[0]} }
		habits = append(habits, Habit{Names: strings.Fields(names), Args: 1, To: to})
	}
	return habits
}

// synonyms are the names that flags with a value have in other launchers.
var synonyms = map[string]string{
	"-np": "c ntasks", "-hostfile": "machinefile f", "-rankfile": "rf", "-cpu-list": "cpu-set",
	"-nproc-per-node": "npernode ntasks-per-node tasks-per-node", "-wdir": "wd chdir D",
	"-rsh": "launcher-exec bootstrap-exec", "-fanout": "branch-count",
	"-host": "hosts hosts-group hostlist machines nodelist w", "-app": "configfile", "-ppn": "perhost grr",
	"-gpus-per-rank": "gpus-per-proc gpus-per-task", "-x": "set-env",
	"-output-filename": "output-directory log-dir", "-start-timeout": "spawn-timeout",
	"-kill-delay": "shutdown-timeout",
}

func always(flags ...string) func([]string) []string {
	return func([]string) []string { return append([]string{}, flags...) }
}

// mapped translates a flag with a number to -map-by.
func mapped(before, after string) func([]string) []string {
	return func(args []string) []string { return []string{"-map-by", before + args[0] + after} }
}
