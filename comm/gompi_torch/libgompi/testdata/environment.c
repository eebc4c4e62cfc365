/*
 * What the environment says when gompi_init is called.
 *   late: the program begins without the launcher's variables, and sets them later.
 *   gone: it begins with them, and has removed them: an error.
 *   alone: the same, and it says that it wants to be alone.
 */
#include <unistd.h>

#include "check.h"

extern char **environ;

/* Begins this program again without an environment, which becomes its arguments. */
static void begin_again(char *self) {
	char *args[4096] = {self, "set"}, *none[] = {NULL};
	int n = 2;

	for (char **v = environ; *v; v++)
		args[n++] = *v;
	execve(self, args, none);
	CHECK(0, "cannot run %s", self);
}

static void set(char **variables) {
	CHECK(!getenv("GOMPI_RANK"), "the environment is not empty");
	for (char **v = variables; *v; v++) {
		char *name = strdup(*v), *value = strchr(name, '=');

		*value = 0;
		setenv(name, value + 1, 1);
	}
}

int main(int argc, char **argv) {
	int me, size;
	const char *how = argc > 1 ? argv[1] : "";

	if (!strcmp(how, "late"))
		begin_again(argv[0]);
	if (!strcmp(how, "set"))
		set(argv + 2);
	else
		clearenv();
	if (!strcmp(how, "gone")) {
		FAILS(gompi_init(0), GOMPI_ERR_OTHER, "GOMPI_BOOT_FD was set when this process began");
		FAILS(gompi_rank(GOMPI_WORLD, &me), GOMPI_ERR_OTHER, "gompi_init has failed");
		printf("refused\n");
		return 0;
	}
	if (!strcmp(how, "alone"))
		setenv("GOMPI_BOOT", "alone", 1);
	OK(gompi_init(0));
	me = rank_of(GOMPI_WORLD);
	size = size_of(GOMPI_WORLD);
	OK(gompi_finalize());
	printf("rank %d of %d done\n", me, size);
	return 0;
}
