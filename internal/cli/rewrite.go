package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// rewrite turns the flags at the head of args into pflag's one unambiguous form, --name=value,
// and returns the program and its arguments as rest. pflag alone would read -np 4 as -n with the
// value "p". On a command line with a flag of srun alone, letters have srun's meaning; the error
// names a replacement.
func (s *Set) rewrite(args []string) (flags, rest []string, err error) {
	used, before := usedHabits{set: s}, usedHabits{set: s}
	defaults, _, err := s.read(s.defaults, &before)
	if err != nil {
		return nil, nil, err
	}
	s.defaults = nil // they are set now: files of programs are read later
	if flags, rest, err = s.read(args, &used); err == nil && !used.asks {
		before.report()
		used.report()
		return append(defaults, flags...), rest, nil
	}
	srun := usedHabits{set: s, asSrun: true}
	_, rest, errSrun := s.read(args, &srun)
	if err == nil || srun.asks {
		if err = errSrun; err == nil {
			err = srun.misplaced(rest)
		}
	}
	return nil, nil, err
}

// read is rewrite with used's meaning of letters.
func (s *Set) read(args []string, used *usedHabits) (flags, rest []string, err error) {
	for len(args) > 0 {
		arg := args[0]
		if len(arg) < 2 || arg[0] != '-' {
			break
		}
		args = args[1:]
		if arg == "--" {
			break
		}
		var flag string
		if flag, args, err = s.one(arg, args, used); err != nil {
			return nil, nil, err
		}
		if flag != "" {
			flags = append(flags, flag)
		}
	}
	more, err := s.mcaFlags(used)
	return append(more, flags...), args, err
}

// one rewrites arg, a flag, and returns the arguments after it and its value. A habit yields no
// flag; its translation is put before the rest.
func (s *Set) one(arg string, args []string, used *usedHabits) (flag string, rest []string, err error) {
	name, value, inArg := strings.Cut(strings.TrimPrefix(arg[1:], "-"), "=")
	if letter, number, ok := s.attached(arg); ok {
		name, value, inArg = letter, number, true
	}
	f, h := s.meaning(name, used.asSrun)
	if !used.asSrun {
		s.spelled[normal(name)]++
	}
	switch {
	case h != nil:
		rest, err = used.take(*h, normal(name), arg, value, inArg, args)
		return "", rest, err
	case f == nil:
		return "", nil, s.unknown(arg, name, inArg && value == "all" || !inArg && len(args) > 0 && args[0] == "all")
	}
	switch {
	case inArg:
		used.keep(f.Name, value, arg)
		return "--" + f.Name + "=" + value, args, nil
	case f.NoOptDefVal != "":
		used.keep(f.Name, "", arg)
		return "--" + f.Name, args, nil
	case len(args) == 0 || s.isFlag(args[0]):
		return "", nil, fmt.Errorf("-%s needs a value%s", name, insteadOf(args))
	}
	used.keep(f.Name, args[0], arg, args[0])
	return "--" + f.Name + "=" + args[0], args[1:], nil
}

// meaning returns the flag or the habit of this name; both are nil for unknown names.
func (s *Set) meaning(name string, asSrun bool) (*pflag.Flag, *Habit) {
	if long := srunLetters[name]; asSrun && long != "" {
		name = long
	}
	if f := s.lookup(name); f != nil {
		return f, nil
	}
	if h, ok := s.habits()[normal(name)]; ok {
		return nil, &h
	}
	return nil, nil
}

// attached reads a letter and a number written together, as in -n4. Other values must be separate
// words: -npx is a slip, not "-n px".
func (s *Set) attached(arg string) (letter, number string, ok bool) {
	if len(arg) < 3 || strings.Trim(arg[2:], "0123456789") != "" {
		return "", "", false
	}
	letter, number = arg[1:2], arg[2:]
	if f := s.lookup(letter); f != nil {
		return letter, number, f.NoOptDefVal == ""
	}
	h, ok := s.habits()[letter]
	return letter, number, ok && h.Args == 1
}

// isFlag reports whether arg is a flag of s or a habit, and so hardly a value.
func (s *Set) isFlag(arg string) bool {
	name, dash := strings.CutPrefix(arg, "-")
	if !dash {
		return false
	}
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "-"), "=")
	if f, h := s.meaning(name, false); f != nil || h != nil {
		return true
	}
	_, _, attached := s.attached(arg)
	return attached
}

func insteadOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return fmt.Sprintf(": %q after it is a flag itself", args[0])
}

// unknown is the error for a name without a flag or habit. all means that the word "all" is its
// value, or follows it.
func (s *Set) unknown(arg, name string, all bool) error {
	switch {
	case name == "h", name == "help":
		return &HelpError{&s.Help, all}
	case name == "version":
		return ErrVersion
	}
	hint := "-h lists the flags"
	arg, _, _ = strings.Cut(arg, "=")
	first, rest, several := strings.Cut(arg, " ")
	if near := s.nearest(name); several && s.isFlag(first) {
		return fmt.Errorf("unknown flag %q: type %s %s as words of their own", arg, first, rest)
	} else if near != "" {
		hint = "did you mean -" + near + "?"
	}
	return fmt.Errorf("unknown flag %s: %s", arg, hint)
}

// nearest returns the known name closest to an unknown one.
func (s *Set) nearest(name string) string {
	var known []string
	s.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	habits := s.habits()
	for _, name := range slices.Sorted(maps.Keys(habits)) {
		if habits[name].To != nil && len(name) > 2 {
			known = append(known, name)
		}
	}
	return Nearest(normal(name), known)
}

// Nearest returns the known word closest to word, "" if none is close: at most a third of the
// letters may differ.
func Nearest(word string, known []string) string {
	best, least := "", max(1, len(word)/3)+1
	for _, k := range known {
		if d := distance(word, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance counts the letters to insert, drop or change to turn a into b. Two transposed letters
// count as one.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 { // the time is quadratic, and no flag is so long
		return max(len(a), len(b))
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			rows[i][j] = min(change, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
