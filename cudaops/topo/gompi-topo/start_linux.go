//go:build cgo && (amd64 || arm64)

package main

// Since glibc 2.34 programs name a new start function. If the linker wraps that function (make
// build), this program uses the old start, in which the program itself calls its constructors.

/*
#cgo LDFLAGS: -Wl,--wrap=__libc_start_main
#include <stddef.h>

typedef int start_main(int, char **, char **);
typedef void start_init(int, char **, char **);
typedef void start_fini(void);

#ifdef __aarch64__
__asm__(".symver old_start,__libc_start_main@GLIBC_2.17");
#else
__asm__(".symver old_start,__libc_start_main@GLIBC_2.2.5");
#endif
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
