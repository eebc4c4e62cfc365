/*
 * Rank 1 ends without gompi_finalize, by argv[1]; all others hear of it. It has a message of each
 * before: a barrier would not do, since rank 1 may leave that first, and its end then breaks it.
 */
#include <signal.h>
#include <unistd.h>

#include "check.h"

static void end(const char *how) {
	int size = size_of(GOMPI_WORLD);

	for (int r = 0; r < size; r++)
		if (r != 1)
			OK(gompi_recv(GOMPI_WORLD, NULL, 0, GOMPI_INT8, r, 1, NULL));
	if (!strcmp(how, "return"))
		return;
	if (!strcmp(how, "kill"))
		raise(SIGKILL);
	if (!strcmp(how, "abort"))
		OK(gompi_abort(7, "no more work"));
	_exit(0);
}

int main(int argc, char **argv) {
	int64_t x = 1;
	int me;

	signal(SIGTERM, SIG_IGN); /* by which gompirun ends the others */
	OK(gompi_init(0));
	me = rank_of(GOMPI_WORLD);
	CHECK(argc > 1, "want exit, return, kill or abort");
	if (me == 1) {
		end(argv[1]);
		return 0;
	}
	OK(gompi_send(GOMPI_WORLD, NULL, 0, GOMPI_INT8, 1, 1));
	FAILS(gompi_allreduce(GOMPI_WORLD, &x, &x, 1, GOMPI_INT64, GOMPI_SUM), GOMPI_ERR_REVOKED, "rank 1");
	FAILS(gompi_barrier(GOMPI_WORLD), GOMPI_ERR_REVOKED, "rank 1");
	printf("rank %d heard\n", me);
	return 0;
}
