/* Threads, each with a communicator of its own. */
#include <pthread.h>

#include "check.h"

enum { THREADS = 4, ROUNDS = 300 };

static int size;
static gompi_comm comms[THREADS];

static void *sums(void *arg) {
	gompi_comm c = *(gompi_comm *)arg;

	for (int64_t i = 0; i < ROUNDS; i++) {
		int64_t x = i;

		OK(gompi_allreduce(c, &x, &x, 1, GOMPI_INT64, GOMPI_SUM));
		CHECK(x == size * i, "the sum is %ld in round %ld", x, i);
	}
	/* The text of an error is of this thread alone. */
	FAILS(gompi_barrier(-*(gompi_comm *)arg), GOMPI_ERR_ARGUMENT, "no communicator -");
	return NULL;
}

int main(void) {
	pthread_t threads[THREADS];
	int me;

	OK(gompi_init());
	size = size_of(GOMPI_WORLD);
	me = rank_of(GOMPI_WORLD);
	for (int i = 0; i < THREADS; i++)
		OK(gompi_dup(GOMPI_WORLD, &comms[i]));
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, sums, &comms[i]) == 0, "no thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(gompi_error()[0] == 0, "an error of another thread: %s", gompi_error());
	OK(gompi_finalize());
	printf("rank %d of %d done\n", me, size);
	return 0;
}
