// Package cli is how the commands read their flags: pflag, with the habits of
// mpirun's users on top. A long name may have one dash or two, and "_" for "-";
// its value may follow after "=" or as the next argument. The first argument
// that is no flag is the program to run, and nothing from there on is looked
// at. Flags that other launchers have and this one does not need are declared
// as habits, which are translated or ignored with one line.
package cli

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"gompi/internal/version"
)

// ErrHelp is returned by Parse for -h, -help and --help, unless a flag of that
// name is declared.
var ErrHelp = pflag.ErrHelp

// ErrHelpAll is the ErrHelp returned for "-h all", "--help all" and the like.
var ErrHelpAll = fmt.Errorf("all flags: %w", ErrHelp)

// ErrVersion is returned by Parse for -version, unless a flag of that name is declared.
var ErrVersion = errors.New("the version is asked for")

// Answer writes what an error of Parse asks for, if that is usage or the version, and reports
// whether it is.
func (s *Set) Answer(err error, usage string, w io.Writer) bool {
	switch {
	case errors.Is(err, ErrHelp):
		io.WriteString(w, usage)
	case errors.Is(err, ErrVersion):
		fmt.Fprintln(w, version.Text(s.Name()))
	default:
		return false
	}
	return true
}

// A Set is the flags of one command. Declare them by pflag's methods (IntVarP
// and the like, or VarP with the value types of this package), then call Parse.
// A Set is not safe for concurrent use.
type Set struct {
	*pflag.FlagSet
	habits  func() map[string]Habit
	spelled map[string]int
	note    func(line string)

	defaults []string                         // flags that what is typed comes after
	getenv   func(name string) (string, bool) // for parameters that are in part on the line; nil: none
}

// New returns an empty Set of the command called name.
func New(name string) *Set {
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	fs.SetInterspersed(false)
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(normal(name))
	})
	fs.SortFlags = false
	fs.Usage = func() {} // Parse returns ErrHelp; what to print then is the caller's
	return &Set{FlagSet: fs, spelled: make(map[string]int), habits: func() map[string]Habit { return nil }}
}

func normal(name string) string { return strings.ReplaceAll(name, "_", "-") }

// Environment declares what the environment says besides the line: flags that hold where the line
// has no others, and how to look up a variable.
func (s *Set) Environment(flags []string, getenv func(name string) (string, bool)) {
	s.defaults, s.getenv = flags, getenv
}

// Spelled returns how often Parse has met a flag under this name, which may be a letter or a
// habit's: one that launchers understand differently. A habit that is translated counts for both.
func (s *Set) Spelled(name string) int { return s.spelled[name] }

// Parse sets the flags that args begins with and returns what follows them, as it is: the program
// and its arguments. A "--" ends the flags and is dropped. Errors name the flag, quote the value
// and state what was wanted; they do not name the command.
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

// explain puts pflag's complaint about a value into the words used elsewhere.
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
