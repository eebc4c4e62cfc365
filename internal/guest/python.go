//go:build linux && cgo

package guest

// #include <dlfcn.h>
// #include <stdio.h>
//
// static int is_python(void)
// {
// 	int (*is)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "Py_IsInitialized");
// 	return is && is();
// }
//
// // dump writes the stacks of all threads to a file. It waits for the lock of the interpreter.
// static void dump(int fd)
// {
// 	int (*ensure)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
// 	void (*release)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "PyGILState_Release");
// 	int (*run)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "PyRun_SimpleString");
// 	char code[100];
// 	if (!ensure || !release || !run)
// 		return;
// 	snprintf(code, sizeof code, "__import__('faulthandler').dump_traceback(%d, True)\n", fd);
// 	int state = ensure();
// 	run(code);
// 	release(state);
// }
// #cgo LDFLAGS: -ldl
import "C"

import (
	"bytes"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// PythonStacks returns the Python stacks of this process's threads, as faulthandler prints them,
// innermost call first, without the calling thread; nil without Python. It waits for Python's lock,
// which a thread that computes in C may keep.
func PythonStacks() []byte {
	if C.is_python() == 0 {
		return nil
	}
	fd, err := unix.MemfdCreate("stacks", unix.MFD_CLOEXEC)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), "stacks")
	defer f.Close()
	C.dump(C.int(fd))
	f.Seek(0, io.SeekStart)
	text, _ := io.ReadAll(f)
	return others(text)
}

// others returns the stacks without the calling thread's, which is the current one.
func others(text []byte) []byte {
	var kept [][]byte
	for stack := range bytes.SplitSeq(bytes.TrimSpace(text), []byte("\n\n")) {
		if !bytes.HasPrefix(stack, []byte("Current thread ")) {
			kept = append(kept, stack)
		}
	}
	return append(bytes.Join(kept, []byte("\n\n")), '\n')
}
