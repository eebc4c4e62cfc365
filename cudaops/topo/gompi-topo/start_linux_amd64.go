//go:build cgo

package main

// glibc 2.34 has a new way to start programs, which they name. Where the linker wraps the function
// that does (make build), this program starts in the old way, as glibc has done since 2.2.5: then
// it is the program that calls its constructors.

/*
#cgo LDFLAGS: -Wl,--wrap=__libc_start_main
#include <stddef.h>

typedef int start_main(int, char **, char **);
typedef void start_init(int, char **, char **);
typedef void start_fini(void);

__asm__(".symver old_start,__libc_start_main@GLIBC_2.2.5");
extern int old_start(start_main *, int, char **, start_init *, start_fini *, start_fini *, void *);
extern start_init *__init_array_start[], *__init_array_end[];

static void constructors(int argc, char **argv, char **env) {
	for (start_init **c = __init_array_start; c < __init_array_end; c++)
		(*c)(argc, argv, env);
}

int __wrap___libc_start_main(start_main *program, int argc, char **argv, start_init *init, start_fini *fini,
                             start_fini *rtld_fini, void *stack_end) {
	return old_start(program, argc, argv, constructors, NULL, rtld_fini, stack_end);
}
*/
import "C"
