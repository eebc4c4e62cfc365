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

// classes have the numbers of MPI 5.0.
var classes = map[abi.Class]class{
	0:          {"MPI_SUCCESS", "there is no error"},
	1:          {"MPI_ERR_BUFFER", "the buffer is not valid"},
	2:          {"MPI_ERR_COUNT", "the count is not valid"},
	3:          {"MPI_ERR_TYPE", "the datatype is not valid"},
	4:          {"MPI_ERR_TAG", "the tag is not valid"},
	5:          {"MPI_ERR_COMM", "the communicator is not valid"},
	6:          {"MPI_ERR_RANK", "the rank is not valid"},
	7:          {"MPI_ERR_REQUEST", "the request is not valid"},
	8:          {"MPI_ERR_ROOT", "the root is not valid"},
	9:          {"MPI_ERR_GROUP", "the group is not valid"},
	10:         {"MPI_ERR_OP", "the operator is not valid"},
	11:         {"MPI_ERR_TOPOLOGY", "the communicator has not the topology that is wanted"},
	12:         {"MPI_ERR_DIMS", "the dimensions are not valid"},
	13:         {"MPI_ERR_ARG", "an argument is not valid"},
	14:         {"MPI_ERR_UNKNOWN", "the error is not known"},
	15:         {"MPI_ERR_TRUNCATE", "the message is longer than the buffer that receives it"},
	16:         {"MPI_ERR_OTHER", "the call has failed, and the text of the error says why"},
	17:         {"MPI_ERR_INTERN", "the library is at fault"},
	18:         {"MPI_ERR_PENDING", "the request is pending: another one has failed before"},
	19:         {"MPI_ERR_IN_STATUS", "the statuses say of each request whether it has failed"},
	20:         {"MPI_ERR_ACCESS", "the file may not be accessed"},
	21:         {"MPI_ERR_AMODE", "the mode of the file is not valid"},
	22:         {"MPI_ERR_ASSERT", "the assertion is not valid"},
	23:         {"MPI_ERR_BAD_FILE", "the name of the file is not valid"},
	24:         {"MPI_ERR_BASE", "the base address is not valid"},
	25:         {"MPI_ERR_CONVERSION", "a function of the program that converts data has failed"},
	26:         {"MPI_ERR_DISP", "the displacement is not valid"},
	27:         {"MPI_ERR_DUP_DATAREP", "the data representation is registered already"},
	28:         {"MPI_ERR_FILE_EXISTS", "the file exists"},
	29:         {"MPI_ERR_FILE_IN_USE", "the file is in use"},
	30:         {"MPI_ERR_FILE", "the file handle is not valid"},
	31:         {"MPI_ERR_INFO_KEY", "the key of the info object is not valid"},
	32:         {"MPI_ERR_INFO_NOKEY", "the info object has no such key"},
	33:         {"MPI_ERR_INFO_VALUE", "the value of the info object is not valid"},
	34:         {"MPI_ERR_INFO", "the info object is not valid"},
	35:         {"MPI_ERR_IO", "input or output has failed"},
	36:         {"MPI_ERR_KEYVAL", "the keyval is not valid"},
	37:         {"MPI_ERR_LOCKTYPE", "the type of the lock is not valid"},
	38:         {"MPI_ERR_NAME", "the name of the service is not published"},
	39:         {"MPI_ERR_NO_MEM", "there is not enough memory"},
	40:         {"MPI_ERR_NOT_SAME", "ranks have given different arguments to a collective call"},
	41:         {"MPI_ERR_NO_SPACE", "there is not enough space for the file"},
	42:         {"MPI_ERR_NO_SUCH_FILE", "the file does not exist"},
	43:         {"MPI_ERR_PORT", "the name of the port is not valid"},
	44:         {"MPI_ERR_QUOTA", "the quota of files is exceeded"},
	45:         {"MPI_ERR_READ_ONLY", "the file or its file system is read-only"},
	46:         {"MPI_ERR_RMA_ATTACH", "the memory cannot be attached to the window"},
	47:         {"MPI_ERR_RMA_CONFLICT", "accesses to the window conflict"},
	48:         {"MPI_ERR_RMA_RANGE", "the target memory is not in the window"},
	49:         {"MPI_ERR_RMA_SHARED", "the ranks cannot share memory"},
	50:         {"MPI_ERR_RMA_SYNC", "the call to synchronize the window does not fit the calls before"},
	51:         {"MPI_ERR_SERVICE", "the name of the service cannot be looked up, or unpublished"},
	52:         {"MPI_ERR_SIZE", "the size is not valid"},
	53:         {"MPI_ERR_SPAWN", "the processes cannot be started"},
	54:         {"MPI_ERR_UNSUPPORTED_DATAREP", "the data representation is not supported"},
	55:         {"MPI_ERR_UNSUPPORTED_OPERATION", "the operation is not supported"},
	56:         {"MPI_ERR_WIN", "the window is not valid"},
	57:         {"MPI_ERR_RMA_FLAVOR", "the window is of the wrong flavor"},
	58:         {"MPI_ERR_PROC_ABORTED", "a process has aborted"},
	59:         {"MPI_ERR_VALUE_TOO_LARGE", "the value is too large for the argument that stores it"},
	60:         {"MPI_ERR_SESSION", "the session is not valid"},
	61:         {"MPI_ERR_ERRHANDLER", "the error handler is not valid"},
	62:         {"MPI_ERR_ABI", "the binary interface does not support it"},
	ProcFailed: {"MPI_ERR_PROC_FAILED", "a process has failed"},
	procFailedPending: {"MPI_ERR_PROC_FAILED_PENDING",
		"a process has failed that may be the one to send what is received"},
	Revoked: {"MPI_ERR_REVOKED", "the communicator is revoked"},
}
