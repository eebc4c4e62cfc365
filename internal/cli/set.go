// Package cli reads the flags of commands: pflag, with the habits of mpirun's users on top. A
// long name may have one dash or two, and "_" for "-"; its value may follow after "=" or as the
// next argument. The first argument that is no flag is the program to run; the rest is its own.
// Needless flags of other launchers are declared as habits, which are translated, or ignored with
// one line.
package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"gompi/internal/version"
)

// ErrVersion is Parse's error for -version, unless a flag of that name is declared.
var ErrVersion = errors.New("the version is asked for")

// Answer writes the usage or the version for an error of Parse that asks for it, and reports
// whether it does. A usage of "" stands for the Help of the Set.
func (s *Set) Answer(err error, usage string, w io.Writer) bool {
	var asked *HelpError
	switch {
	case errors.As(err, &asked):
		io.WriteString(w, cmp.Or(usage, asked.Text(asked.All)))
	case errors.Is(err, ErrVersion):
		fmt.Fprintln(w, version.Text(s.Name()))
	default:
		return false
	}
	return true
}

// A Set is the flags of one command. Declare flags by Flag, or without a Help by pflag's methods
// (IntVarP and the like, or VarP with the value types of this package), then call Parse. A Set is
// not safe for concurrent use.
type Set struct {
	*pflag.FlagSet
	Help    Help
	Group   string // of the next flags
	habits  func() map[string]Habit
	spelled map[string]int
	note    func(line string)

	defaults []string                         // flags to read before the line
	getenv   func(name string) (string, bool) // for parameters partly on the line; nil: none
}

// New returns an empty Set of the command called name.
func New(name string) *Set {
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	fs.SetInterspersed(false)
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(normal(name))
	})
	fs.SortFlags = false
	fs.Usage = func() {} // Answer prints it
	return &Set{FlagSet: fs, spelled: make(map[string]int), habits: func() map[string]Habit { return nil }}
}

// FlagUsages is pflag's list of the flags, of at most 80 columns.
func (s *Set) FlagUsages() string { return s.FlagUsagesWrapped(80) }

func normal(name string) string { return strings.ReplaceAll(name, "_", "-") }

// Environment declares the environment's defaults for flags absent from the line, and the lookup
// of variables.
func (s *Set) Environment(flags []string, getenv func(name string) (string, bool)) {
	s.defaults, s.getenv = flags, getenv
}

// Spelled returns the number of times that Parse has met a flag under this name, such as a letter
// that launchers understand differently. A translated habit counts under both names.
func (s *Set) Spelled(name string) int { return s.spelled[name] }

// Parse sets the flags at the beginning of args and returns the rest unchanged: the program and
// its arguments. A "--" ends the flags and is dropped. Errors name the flag, quote the value and
// state the valid values; they do not name the command.
func (s *Set) Parse(args []string) (rest []string, err error) {
	flags, rest, err := s.rewrite(args)
	if err != nil {
		return nil, err
	}
	if err := s.FlagSet.Parse(flags); err != nil {
		return nil, explain(err)
	}
	return rest, nil
}

// ParseAll is Parse for a command whose flags and operands may stand in any order. It returns the
// operands.
func (s *Set) ParseAll(args []string) (operands []string, err error) {
	for {
		rest, err := s.Parse(args)
		if err != nil || len(rest) == 0 {
			return operands, err
		}
		operands, args = append(operands, rest[0]), rest[1:]
	}
}

// explain rewrites pflag's error about a value in the form of this package.
func explain(err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}
	f := bad.GetFlag()
	var number *strconv.NumError
	if errors.As(err, &number) || f.Value.Type() == "bool" {
		want := "a number"
		if f.Value.Type() == "bool" {
			want = "true or false"
		}
		return fmt.Errorf("-%s %q: want %s", f.Name, bad.GetValue(), want)
	}
	return fmt.Errorf("-%s %q: %w", f.Name, bad.GetValue(), bad.Unwrap())
}

// lookup finds a declared flag by its long name or its letter.
func (s *Set) lookup(name string) *pflag.Flag {
	name = normal(name)
	if f := s.Lookup(name); f != nil {
		return f
	}
	if len(name) == 1 {
		return s.ShorthandLookup(name)
	}
	return nil
}
