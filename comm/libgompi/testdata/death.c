/* Rank 1 ends without gompi_finalize, by argv[1]; all others hear of it. */
#include <signal.h>
#include <unistd.h>

#include "check.h"

int main(int argc, char **argv) {
	int64_t x = 1;
	int me;

	signal(SIGTERM, SIG_IGN); /* by which gompirun ends the others */
	OK(gompi_init());
	me = rank_of(GOMPI_WORLD);
	OK(gompi_barrier(GOMPI_WORLD));
	if (me == 1 && argc > 1) {
		if (!strcmp(argv[1], "kill"))
			raise(SIGKILL);
		if (!strcmp(argv[1], "abort"))
			OK(gompi_abort(7, "no more work"));
		if (!strcmp(argv[1], "return"))
			return 0;
		_exit(0);
	}
	FAILS(gompi_allreduce(GOMPI_WORLD, &x, &x, 1, GOMPI_INT64, GOMPI_SUM), GOMPI_ERR_REVOKED, "rank 1");
	FAILS(gompi_barrier(GOMPI_WORLD), GOMPI_ERR_REVOKED, "rank 1");
	printf("rank %d heard\n", me);
	return 0;
}
