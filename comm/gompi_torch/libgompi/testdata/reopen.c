/* The library is opened, closed and opened again: it is the same rank. */
#include <dlfcn.h>
#include <stdio.h>

#include "gompi.h"

/* Calls gompi_init(0), or gompi_finalize, which ignores the argument. */
static int call(void *library, const char *name) {
	int (*f)(int64_t);

	*(void **)&f = dlsym(library, name);
	return f ? f(0) : -1;
}

int main(int argc, char **argv) {
	void *library = dlopen(argv[argc - 1], RTLD_NOW);

	if (!library || call(library, "gompi_init") != GOMPI_OK)
		return 1;
	dlclose(library);
	library = dlopen(argv[argc - 1], RTLD_NOW);
	if (!library || call(library, "gompi_init") != GOMPI_ERR_OTHER || call(library, "gompi_finalize") != GOMPI_OK) {
		fprintf(stderr, "it was unloaded\n");
		return 1;
	}
	return 0;
}
