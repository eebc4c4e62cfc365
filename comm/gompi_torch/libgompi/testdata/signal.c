/* Rank 1 waits for what never comes, until a signal. With an argument it handles that itself. */
#include <signal.h>
#include <unistd.h>

#include "check.h"

static void handle(int number) {
	(void)number;
	_exit(42);
}

int main(int argc, char **argv) {
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
	int32_t x;
	int me;

	(void)argv;
	OK(gompi_init(0));
	me = rank_of(GOMPI_WORLD);
	if (argc > 1)
		sigaction(SIGINT, &action, NULL);
	OK(gompi_barrier(GOMPI_WORLD));
	if (me == 1) {
		printf("pid %d\n", getpid());
		fflush(stdout);
	}
	gompi_recv(GOMPI_WORLD, &x, 1, GOMPI_INT32, 1 - me, 1, NULL);
	fprintf(stderr, "rank %d: %s\n", me, gompi_error());
	return 1;
}
