package typemap

import "fmt"

// An ErrorClass is MPI's class of an error, with the number of the standard ABI.
type ErrorClass int

const (
	ErrCount    ErrorClass = 2
	ErrType     ErrorClass = 3
	ErrDims     ErrorClass = 12
	ErrArg      ErrorClass = 13
	ErrTruncate ErrorClass = 15
)

// An Error names the wrong argument of a call, and the values wanted.
type Error struct {
	Class ErrorClass
	text  string
}

func (e *Error) Error() string { return e.text }

func wrong(c ErrorClass, format string, args ...any) *Error {
	return &Error{c, fmt.Sprintf(format, args...)}
}

// notNegative checks a count: the argument called name.
func notNegative(c ErrorClass, name string, n int) error {
	if n < 0 {
		return wrong(c, "%s is %d: want 0 or more", name, n)
	}
	return nil
}

// noneNegative checks an array of counts.
func noneNegative(name string, counts []int) error {
	for i, n := range counts {
		if n < 0 {
			return wrong(ErrArg, "%s[%d] is %d: want 0 or more", name, i, n)
		}
	}
	return nil
}
