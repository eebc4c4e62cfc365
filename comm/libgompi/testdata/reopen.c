/* The library is opened, closed and opened again: it is the same rank. */
#include <dlfcn.h>
#include <stdio.h>

#include "gompi.h"

/* Calls a function of the library that has no arguments. */
static int call(void *library, const char *name) {
	int (*f)(void);

	*(void **)&f = dlsym(library, name);
	return f ? f() : -1;
}

int main(int argc, char **argv) {
	void *library = dlopen(argv[argc - 1], RTLD_NOW);

	if (!library || call(library, "gompi_init") != GOMPI_OK)
		return 1;
	dlclose(library);
	library = dlopen(argv[argc - 1], RTLD_NOW);
	if (!library || call(library, "gompi_init") != GOMPI_ERR_STATE || call(library, "gompi_finalize") != GOMPI_OK) {
		fprintf(stderr, "it was unloaded\n");
		return 1;
	}
	return 0;
}
