package errs

import (
	"fmt"
	"slices"
	"sync"

	"gompi/comm/internal/mpi/abi"
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

// Added returns how many numbers they have at most.
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
	return code, classNames[code] != ""
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

// describe returns the name of a class and the last error of it.
func (n *notedErrors) describe(c abi.Class) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := ClassName(c)
	if last := n.text[c]; last != "" && c != 0 {
		s += ": " + last
	}
	return s
}

func ClassName(c abi.Class) string {
	if classNames[c] != "" {
		return classNames[c]
	}
	return fmt.Sprintf("error code %d", c)
}

// classNames have the numbers of MPI 5.0.
var classNames = map[abi.Class]string{
	0: "MPI_SUCCESS", 1: "MPI_ERR_BUFFER", 2: "MPI_ERR_COUNT", 3: "MPI_ERR_TYPE", 4: "MPI_ERR_TAG",
	5: "MPI_ERR_COMM", 6: "MPI_ERR_RANK", 7: "MPI_ERR_REQUEST", 8: "MPI_ERR_ROOT", 9: "MPI_ERR_GROUP",
	10: "MPI_ERR_OP", 11: "MPI_ERR_TOPOLOGY", 12: "MPI_ERR_DIMS", 13: "MPI_ERR_ARG", 14: "MPI_ERR_UNKNOWN",
	15: "MPI_ERR_TRUNCATE", 16: "MPI_ERR_OTHER", 17: "MPI_ERR_INTERN", 18: "MPI_ERR_PENDING",
	19: "MPI_ERR_IN_STATUS", 20: "MPI_ERR_ACCESS", 21: "MPI_ERR_AMODE", 22: "MPI_ERR_ASSERT",
	23: "MPI_ERR_BAD_FILE", 24: "MPI_ERR_BASE", 25: "MPI_ERR_CONVERSION", 26: "MPI_ERR_DISP",
	27: "MPI_ERR_DUP_DATAREP", 28: "MPI_ERR_FILE_EXISTS", 29: "MPI_ERR_FILE_IN_USE", 30: "MPI_ERR_FILE",
	31: "MPI_ERR_INFO_KEY", 32: "MPI_ERR_INFO_NOKEY", 33: "MPI_ERR_INFO_VALUE", 34: "MPI_ERR_INFO",
	35: "MPI_ERR_IO", 36: "MPI_ERR_KEYVAL", 37: "MPI_ERR_LOCKTYPE", 38: "MPI_ERR_NAME", 39: "MPI_ERR_NO_MEM",
	40: "MPI_ERR_NOT_SAME", 41: "MPI_ERR_NO_SPACE", 42: "MPI_ERR_NO_SUCH_FILE", 43: "MPI_ERR_PORT",
	44: "MPI_ERR_QUOTA", 45: "MPI_ERR_READ_ONLY", 46: "MPI_ERR_RMA_ATTACH", 47: "MPI_ERR_RMA_CONFLICT",
	48: "MPI_ERR_RMA_RANGE", 49: "MPI_ERR_RMA_SHARED", 50: "MPI_ERR_RMA_SYNC", 51: "MPI_ERR_SERVICE",
	52: "MPI_ERR_SIZE", 53: "MPI_ERR_SPAWN", 54: "MPI_ERR_UNSUPPORTED_DATAREP",
	55: "MPI_ERR_UNSUPPORTED_OPERATION", 56: "MPI_ERR_WIN", 57: "MPI_ERR_RMA_FLAVOR",
	58: "MPI_ERR_PROC_ABORTED", 59: "MPI_ERR_VALUE_TOO_LARGE", 60: "MPI_ERR_SESSION",
	61: "MPI_ERR_ERRHANDLER", 62: "MPI_ERR_ABI",
	ProcFailed: "MPI_ERR_PROC_FAILED", procFailedPending: "MPI_ERR_PROC_FAILED_PENDING", Revoked: "MPI_ERR_REVOKED",
}
