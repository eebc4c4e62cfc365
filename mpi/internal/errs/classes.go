package errs

import (
	"fmt"
	"slices"
	"sync"

	"gompi/mpi/internal/abi"
)

// codes are the classes and codes that programs have added. Each has the next number.
var codes addedCodes

const removed abi.Class = -1

type addedCodes struct {
	mu      sync.Mutex
	classes []abi.Class // of each, removed if there is none any more
	texts   map[abi.Class]string
}

func (a *addedCodes) add(class func(code abi.Class) abi.Class) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.Index(a.classes, removed)
	if i < 0 {
		i = len(a.classes)
		a.classes = append(a.classes, removed)
	}
	code := firstCode + abi.Class(i)
	a.classes[i] = class(code)
	return int(code)
}

// remove makes the number of a class or of a code free for another.
func (a *addedCodes) remove(code abi.Class, isClass bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := int(code - firstCode)
	if i < 0 || i >= len(a.classes) || a.classes[i] == removed || (a.classes[i] == code) != isClass {
		return New(Arg, "it is not one that was added")
	}
	if _, ok := a.texts[code]; ok {
		return New(Arg, "it has a text")
	}
	kept := a.classes[i]
	a.classes[i] = removed
	if isClass && slices.Contains(a.classes, code) {
		a.classes[i] = kept
		return New(Arg, "the error class has codes")
	}
	return nil
}

// Added returns the number of codes, from firstCode on, that are or were in use.
func Added() int {
	codes.mu.Lock()
	defer codes.mu.Unlock()
	return len(codes.classes)
}

// classOf returns the class of a code, false if there is no such code.
func (a *addedCodes) classOf(code abi.Class) (abi.Class, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := int(code - firstCode); i >= 0 && i < len(a.classes) && a.classes[i] != removed {
		return a.classes[i], true
	}
	return code, classes[code].name != ""
}

func AddErrorClass() (int, error) {
	return codes.add(func(code abi.Class) abi.Class { return code }), nil
}

func AddErrorCode(class int) (int, error) {
	if _, ok := codes.classOf(abi.Class(class)); !ok {
		return 0, New(Arg, "the error class is not valid")
	}
	return codes.add(func(abi.Class) abi.Class { return abi.Class(class) }), nil
}

func RemoveErrorClass(class int) error { return codes.remove(abi.Class(class), true) }
func RemoveErrorCode(code int) error   { return codes.remove(abi.Class(code), false) }

func RemoveErrorString(code int) error {
	if err := checkAdded(code); err != nil {
		return err
	}
	codes.mu.Lock()
	defer codes.mu.Unlock()
	delete(codes.texts, abi.Class(code))
	return nil
}

func checkAdded(code int) error {
	if _, ok := codes.classOf(abi.Class(code)); !ok || abi.Class(code) < firstCode {
		return New(Arg, "the error code is not one that was added")
	}
	return nil
}

func AddErrorString(code int, text abi.Text) error {
	if err := checkAdded(code); err != nil {
		return err
	}
	codes.mu.Lock()
	defer codes.mu.Unlock()
	if codes.texts == nil {
		codes.texts = map[abi.Class]string{}
	}
	codes.texts[abi.Class(code)] = text.String()
	return nil
}

func ErrorClass(code int) (int, error) {
	c, ok := codes.classOf(abi.Class(code))
	if !ok {
		return 0, New(Arg, "the error code is not valid")
	}
	return int(c), nil
}

// ErrorString describes the last error with a code.
func ErrorString(code int, text abi.Text) (int, error) {
	c := abi.Class(code)
	if _, ok := codes.classOf(c); !ok {
		return 0, New(Arg, "the error code is not valid")
	}
	if c >= firstCode {
		codes.mu.Lock()
		defer codes.mu.Unlock()
		return text.Set(codes.texts[c], abi.C.MaxErrorString), nil
	}
	return text.Set(lastError.describe(c), abi.C.MaxErrorString), nil
}

// describe returns the name of a class, its meaning, and its last error.
func (n *notedErrors) describe(c abi.Class) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := ClassName(c) + ": " + classes[c].text
	if last := n.text[c]; last != "" && c != 0 {
		s += ": " + last
	}
	return s
}

func ClassName(c abi.Class) string {
	if name := classes[c].name; name != "" {
		return name
	}
	return fmt.Sprintf("error code %d", c)
}

// A class is the name and text of an error class for MPI_Error_string.
type class struct{ name, text string }
