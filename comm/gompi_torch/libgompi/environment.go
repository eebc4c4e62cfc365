//go:build linux && cgo

package main

// #include <stddef.h>
// extern char **environ;
// static char *gompi_variable(size_t i) { return environ ? environ[i] : NULL; }
import "C"

import (
	"os"
	"strings"
)

// environment returns C's present variables. Go has the variables with which the process began.
func environment() (all []string) {
	for i := C.size_t(0); ; i++ {
		v := C.gompi_variable(i)
		if v == nil {
			return all
		}
		all = append(all, C.GoString(v))
	}
}

// adopt makes Go's variables equal to current. It sets only variables that differ: os.Setenv sets
// C's, too, and another thread may be reading them.
func adopt(current []string) {
	set := map[string]bool{}
	for _, v := range current {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" || set[name] { // of two with one name, the first counts
			continue
		}
		set[name] = true
		if old, had := os.LookupEnv(name); !had || old != value {
			os.Setenv(name, value)
		}
	}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); name != "" && !set[name] {
			os.Unsetenv(name)
		}
	}
}
