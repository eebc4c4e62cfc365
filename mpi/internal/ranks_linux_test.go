package mpi

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"unsafe"

	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
)

// Tests run as ranks of a job, under gompirun: a process is one rank of MPI. Such a test is a
// function of jobs; ranks starts the test's own program as many times, with its name.

const jobVariable = "GOMPI_TEST_JOB"

// jobs are what ranks do, by name.
var jobs = map[string]func() error{}

var gompirun string

func TestMain(m *testing.M) {
	if name := os.Getenv(jobVariable); name != "" {
		os.Exit(runJob(name))
	}
	dir, err := os.MkdirTemp("", "mpi")
	if err == nil {
		gompirun = filepath.Join(dir, "gompirun")
		var out []byte
		if out, err = exec.Command("go", "build", "-o", gompirun,
			"gompi/mpirun/gompirun").CombinedOutput(); err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

func runJob(name string) int {
	Use(testFace())
	err := Init()
	if err == nil {
		err = jobs[name]()
	}
	if err == nil {
		err = comms.Leave()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		return 1
	}
	return 0
}

// ranks runs a job with n ranks.
func ranks(t *testing.T, n int, job string, env ...string) {
	t.Helper()
	cmd := exec.Command(gompirun, "-np", fmt.Sprint(n), "-oversubscribe", "-timeout", "120", os.Args[0])
	cmd.Env = append(append(os.Environ(), jobVariable+"="+job), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s with %d ranks: %v\n%s", job, n, err, out)
	}
}

// A test's memory for C: allocated once, never freed.
var memory [][]byte

// testFace is a Face in Go. Functions of the program are those of callbacks, by number.
func testFace() abi.Face {
	return abi.Face{
		ProcNull: abi.ProcNull, AnySource: abi.AnySource, Undefined: abi.Undefined, BsendOverhead: 16,
		BufferAutomatic: 2, MaxObjectName: 64, MaxErrorString: 256,
		MaxProcessorName: 64, MaxInfoKey: 32, MaxInfoValue: 256,
		DistributeBlock: 1, DistributeCyclic: 2, DistributeNone: 3, DefaultArgument: -1,
		CallOp: func(fn, in, inout abi.Addr, n int, op, datatype abi.Handle) {
			operatorsOfTests[fn](in, inout, n, datatype)
		},
		CopyAttr: func(fn abi.Addr, kind int, object abi.Handle, keyval int, extra, value abi.Addr) (abi.Addr, bool,
			abi.Class) {
			return copiesOfTests[fn](object, keyval, extra, value)
		},
		DeleteAttr: func(fn abi.Addr, kind int, object abi.Handle, keyval int, value, extra abi.Addr) abi.Class {
			return deletesOfTests[fn](object, keyval, value, extra)
		},
		CallErrhandler: func(fn abi.Addr, h abi.Handle, kind int, object abi.Handle, class abi.Class) {
			handlersOfTests[fn](object, class)
		},
		Alloc: func(n int) abi.Addr {
			memory = append(memory, make([]byte, n))
			return addr(memory[len(memory)-1])
		},
		Free:    func(abi.Addr) {},
		Combine: func(op, datatype abi.Handle, in, inout abi.Addr, n int) bool { return false },
		Alone:   func() error { return nil },
		Flush:   func() {},
		Exit:    os.Exit,
	}
}

var (
	operatorsOfTests = map[abi.Addr]func(in, inout abi.Addr, n int, datatype abi.Handle){}
	copiesOfTests    = map[abi.Addr]func(object abi.Handle, keyval int, extra, value abi.Addr) (abi.Addr, bool, abi.Class){}
	deletesOfTests   = map[abi.Addr]func(object abi.Handle, keyval int, value, extra abi.Addr) abi.Class{}
	handlersOfTests  = map[abi.Addr]func(comm abi.Handle, class abi.Class){}
)

// addr returns the address of s's elements, which live in the heap, do not move, and are kept: MPI
// knows them by their address alone.
func addr[T any](s []T) abi.Addr {
	kept = append(kept, s)
	return abi.Addr(uintptr(unsafe.Pointer(unsafe.SliceData(s))))
}

var kept []any

// array returns the address of integers that a call gets. They live as long as the process.
func array(ints ...int) abi.Array {
	s := make([]int32, len(ints)+1)
	for i, x := range ints {
		s[i] = int32(x)
	}
	return abi.Array(addr(s))
}

// do calls a function of MPI by its name, as a face does. Arguments are numbers, handles,
// addresses, slices of handles and of statuses, and pointers to results.
func do(name string, arguments ...any) error {
	for number := range functions {
		if functions[number].name == "MPI_"+name {
			return invoke(number, arguments)
		}
	}
	return fmt.Errorf("there is no function %s", name)
}

func invoke(number int, arguments []any) error {
	a := new(Args)
	for i, x := range arguments {
		a[i] = word(x)
	}
	f := &functions[number]
	if f.check != nil {
		if err := f.check(a, f.of); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if err := f.call(a); err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	for i, x := range arguments {
		switch p := x.(type) {
		case *abi.Handle:
			*p = abi.Handle(a[i])
		case *int:
			*p = int(a[i])
		}
	}
	return nil
}

func word(x any) int64 {
	switch x := x.(type) {
	case int:
		return int64(x)
	case abi.Handle:
		return int64(x)
	case abi.Addr:
		return int64(x)
	case abi.Array:
		return int64(x)
	case abi.Text:
		return int64(x)
	case *abi.Handle:
		return int64(*x)
	case *int:
		return int64(*x)
	case []int32:
		return int64(addr(x))
	case []abi.Handle:
		return int64(addr(x))
	case []abi.Status:
		return int64(addr(x))
	case *abi.Status:
		return int64(uintptr(unsafe.Pointer(x)))
	case nil:
		return 0
	}
	panic(fmt.Sprintf("an argument of type %T", x))
}

// text returns a string of C's.
func text(s string) abi.Text {
	b := append([]byte(s), 0)
	memory = append(memory, b)
	return abi.Text(addr(b))
}

// wants returns an error unless got is what is wanted. It takes an address, so that calls before it
// in a list of arguments have been made.
func wants[T comparable](what string, got *T, want T) error {
	if *got != want {
		return fmt.Errorf("%s is %v: want %v", what, *got, want)
	}
	return nil
}
