/* Why gompi_init cannot have its other half: the error is printed. argv[1] is a library to load before. */
#include <dlfcn.h>

#include "check.h"

int main(int argc, char **argv) {
	if (argc > 1)
		CHECK(dlopen(argv[1], RTLD_NOW), "%s", dlerror());
	CHECK(gompi_init(0) == GOMPI_ERR_OTHER, "%s", gompi_error());
	printf("%s\n", gompi_error());
	return 0;
}
