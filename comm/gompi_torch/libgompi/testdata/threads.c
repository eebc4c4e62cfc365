/* Threads, each with a communicator of its own, and two in one. */
#include <pthread.h>

#include "check.h"

enum { THREADS = 4, ROUNDS = 300 };

static int size;
static gompi_comm comms[THREADS];

static void *sums(void *arg) {
	gompi_comm c = *(gompi_comm *)arg;

	gompi_set_background(c % 2);
	for (int64_t i = 0; i < ROUNDS; i++) {
		int64_t x = i;

		OK(gompi_allreduce(c, &x, &x, 1, GOMPI_INT64, GOMPI_SUM));
		CHECK(x == size * i, "the sum is %ld in round %ld", x, i);
	}
	/* The text of an error is of this thread alone. */
	FAILS(gompi_barrier(-*(gompi_comm *)arg), GOMPI_ERR_ARGUMENT, "no communicator -");
	return NULL;
}

/*
 * Enters a barrier of the last communicator. Of two threads one is refused, whichever comes second;
 * it lets the other ranks come.
 */
static void *meet(void *refused) {
	gompi_comm c = comms[THREADS - 1];
	int code = gompi_barrier(c);

	if (code == GOMPI_OK)
		return NULL;
	CHECK(strstr(gompi_error(), "inside a collective"), "returned %d: %s", code, gompi_error());
	++*(int *)refused;
	for (int r = 1; r < size; r++)
		OK(gompi_send(c, NULL, 0, GOMPI_INT8, r, 1));
	return NULL;
}

static void two_in_one(int me) {
	pthread_t other;
	int refused[2] = {0, 0};

	if (size == 1)
		return; /* a barrier of one is over at once */
	if (me > 0) {
		OK(gompi_recv(comms[THREADS - 1], NULL, 0, GOMPI_INT8, 0, 1, NULL));
		OK(gompi_barrier(comms[THREADS - 1]));
		return;
	}
	CHECK(pthread_create(&other, NULL, meet, &refused[0]) == 0, "no thread");
	meet(&refused[1]);
	pthread_join(other, NULL);
	CHECK(refused[0] + refused[1] == 1, "%d threads were refused", refused[0] + refused[1]);
}

int main(void) {
	pthread_t threads[THREADS];
	int me;

	OK(gompi_init(0));
	size = size_of(GOMPI_WORLD);
	me = rank_of(GOMPI_WORLD);
	for (int i = 0; i < THREADS; i++)
		OK(gompi_dup(GOMPI_WORLD, &comms[i]));
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, sums, &comms[i]) == 0, "no thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(gompi_error()[0] == 0, "an error of another thread: %s", gompi_error());
	two_in_one(me);
	OK(gompi_finalize());
	printf("rank %d of %d done\n", me, size);
	return 0;
}
