/* Errors: each has its code, and a text that quotes what is wrong. */
#include "check.h"

static int me, size;

static void arguments(void) {
	const gompi_comm w = GOMPI_WORLD;
	int64_t x[64] = {0}, counts[64], negative[64];
	gompi_request r = 4711;
	gompi_comm c;
	int found, nobody = 1000000;

	for (int i = 0; i < 64; i++) {
		counts[i] = 1;
		negative[i] = -3;
	}
	FAILS(gompi_barrier(4711), GOMPI_ERR_ARGUMENT, "no communicator 4711");
	FAILS(gompi_barrier(GOMPI_COMM_NULL), GOMPI_ERR_ARGUMENT, "no communicator 0");
	FAILS(gompi_barrier(-1), GOMPI_ERR_ARGUMENT, "no communicator -1");
	FAILS(gompi_set_timeout(w, -1), GOMPI_ERR_ARGUMENT, "milliseconds is -1");
	FAILS(gompi_dealloc_local(x), GOMPI_ERR_ARGUMENT, "want memory of gompi_alloc_local");
	FAILS(gompi_create_group(w, &nobody, 1, 0, &c), GOMPI_ERR_ARGUMENT, "rank 1000000");
	FAILS(gompi_create_group(w, &me, 1, -1, &c), GOMPI_ERR_ARGUMENT, "tag -1");
	FAILS(gompi_wait(&r, 0, NULL), GOMPI_ERR_ARGUMENT, "no request 4711");

	FAILS(gompi_send(w, x, 1, GOMPI_INT64, size, 0), GOMPI_ERR_ARGUMENT, "to rank");
	FAILS(gompi_send(w, x, 1, GOMPI_INT64, 0, -5), GOMPI_ERR_ARGUMENT, "tag -5");
	FAILS(gompi_recv(w, x, 1, GOMPI_INT64, -3, 0, NULL), GOMPI_ERR_ARGUMENT, "from rank -3");
	OK(gompi_irecv(w, x, 1, GOMPI_INT64, size, 0, &r));
	FAILS(gompi_wait(&r, 0, NULL), GOMPI_ERR_ARGUMENT, "from rank");
	CHECK(r == GOMPI_REQUEST_NULL, "the request is %ld", (long)r);
	FAILS(gompi_probe(w, size, 0, NULL), GOMPI_ERR_ARGUMENT, "from rank");
	FAILS(gompi_iprobe(w, size, 0, &found, NULL), GOMPI_ERR_ARGUMENT, "from rank");

	FAILS(gompi_bcast(w, x, 2, GOMPI_INT64, -1), GOMPI_ERR_ARGUMENT, "root -1");
	FAILS(gompi_allreduce(w, x, x, 1, GOMPI_FLOAT32, GOMPI_BAND), GOMPI_ERR_ARGUMENT, "float32");
	FAILS(gompi_allreduce(w, x, x + 1, 2, GOMPI_INT64, GOMPI_SUM), GOMPI_ERR_ARGUMENT, "overlap");
	FAILS(gompi_reduce_scatter(w, x, x + 32, negative, GOMPI_INT64, GOMPI_SUM), GOMPI_ERR_ARGUMENT, "-3 elements");
	FAILS(gompi_alltoallv(w, x, negative, x + 32, counts, GOMPI_INT64), GOMPI_ERR_ARGUMENT, "-3 elements");

	/* A text names no place in Go's code, which is none of the program. */
	CHECK(!strstr(gompi_error(), ".go:"), "the error is \"%s\"", gompi_error());
}

/* Messages that do not fit leave the communicator as it is. */
static void messages(void) {
	int32_t out[4] = {1, 2, 3, 4}, in[2] = {0, 0};
	gompi_request r;
	gompi_status st;

	OK(gompi_isend(GOMPI_WORLD, out, 4, GOMPI_INT32, me, 1, &r));
	FAILS(gompi_recv(GOMPI_WORLD, in, 2, GOMPI_INT32, me, 1, &st), GOMPI_ERR_TRUNCATED, "");
	CHECK(st.count == 4 && in[0] == 1 && in[1] == 2, "%zu elements, %d, %d", st.count, in[0], in[1]);
	OK(gompi_wait(&r, 0, NULL));
	OK(gompi_isend(GOMPI_WORLD, out, 2, GOMPI_INT32, me, 2, &r));
	FAILS(gompi_recv(GOMPI_WORLD, in, 2, GOMPI_FLOAT32, me, 2, &st), GOMPI_ERR_OTHER, "float32");
	CHECK(st.type == GOMPI_INT32, "the type is %d", st.type);
	OK(gompi_wait(&r, 0, NULL));
}

static void mismatch(void) {
	gompi_comm c;
	int64_t x = 1, y[64];

	if (size == 1)
		return;
	OK(gompi_dup(GOMPI_WORLD, &c));
	if (me == 0)
		FAILS(gompi_allreduce(c, &x, y, 1, GOMPI_INT64, GOMPI_SUM), GOMPI_ERR_MISMATCH, "bcast");
	else
		FAILS(gompi_bcast(c, y, 2, GOMPI_INT64, 0), GOMPI_ERR_MISMATCH, "allreduce");
	CHECK(gompi_barrier(c) == GOMPI_ERR_MISMATCH || gompi_barrier(c) == GOMPI_ERR_REVOKED, "%s", gompi_error());
	gompi_free(c);
	OK(gompi_barrier(GOMPI_WORLD));
}

/*
 * c is broken by rank 0, which gave up in a barrier. It had come to it: so a rank that has not heard of
 * the rest may still get through, but once.
 */
static void broken(gompi_comm c, const char *says) {
	if (me == 0)
		return;
	gompi_barrier(c);
	FAILS(gompi_barrier(c), GOMPI_ERR_REVOKED, says);
}

static void timeouts(void) {
	gompi_comm c;
	gompi_request r;
	int32_t x = 0, seven = 7;

	OK(gompi_dup(GOMPI_WORLD, &c));
	OK(gompi_set_timeout(c, 50));
	FAILS(gompi_recv(c, &x, 1, GOMPI_INT32, me, 1, NULL), GOMPI_ERR_TIMEOUT, "50ms");
	FAILS(gompi_probe(c, me, 1, NULL), GOMPI_ERR_TIMEOUT, "50ms");
	OK(gompi_irecv(c, &x, 1, GOMPI_INT32, me, 2, &r));
	FAILS(gompi_wait(&r, 0, NULL), GOMPI_ERR_TIMEOUT, "50ms");
	CHECK(r != GOMPI_REQUEST_NULL, "the request is gone");
	FAILS(gompi_wait(&r, 20, NULL), GOMPI_ERR_TIMEOUT, "20ms");
	CHECK(r != GOMPI_REQUEST_NULL, "the request is gone");
	OK(gompi_send(c, &seven, 1, GOMPI_INT32, me, 2));
	OK(gompi_wait(&r, 20000, NULL));
	CHECK(r == GOMPI_REQUEST_NULL, "the request is still there");
	CHECK(x == 7, "received %d", x);
	OK(gompi_set_timeout(c, 0));
	OK(gompi_barrier(c));
	OK(gompi_barrier(GOMPI_WORLD)); /* all have left the barrier of c, which the next breaks */
	if (me == 0) {
		OK(gompi_set_timeout(c, 50));
		if (size > 1) {
			FAILS(gompi_barrier(c), GOMPI_ERR_TIMEOUT, "50ms");
			FAILS(gompi_barrier(c), GOMPI_ERR_REVOKED, "barrier");
		}
	}
	OK(gompi_barrier(GOMPI_WORLD));
	broken(c, "rank 0");
	gompi_free(c);
}

/* Rank 0 breaks a communicator, whatever the others are in. */
static void revoked(void) {
	gompi_comm c;

	if (size == 1)
		return;
	OK(gompi_dup(GOMPI_WORLD, &c));
	OK(gompi_hide(c));
	if (me == 0)
		OK(gompi_revoke(c, "no more of it"));
	FAILS(gompi_barrier(c), GOMPI_ERR_REVOKED, "no more of it");
	gompi_free(c);
	OK(gompi_barrier(GOMPI_WORLD));
}

/* Ends the call when it is asked for the third time. */
static int64_t thrice(void *asked, int64_t waited) {
	int n = ++*(int *)asked;

	CHECK(waited >= n, "asked for the %dth time after %ld ms", n, (long)waited);
	return n < 3 ? 1 : -1;
}

/* Sends what this rank waits for, and waits itself. */
static int64_t sends(void *asked, int64_t waited) {
	int32_t x, seven = 7;

	CHECK(waited >= 1 && ++*(int *)asked == 1, "asked again after %ld ms", (long)waited);
	OK(gompi_set_timeout(GOMPI_WORLD, 20));
	FAILS(gompi_recv(GOMPI_WORLD, &x, 1, GOMPI_INT32, me, 3, NULL), GOMPI_ERR_TIMEOUT, "20ms");
	OK(gompi_set_timeout(GOMPI_WORLD, 0));
	OK(gompi_send(GOMPI_WORLD, &seven, 1, GOMPI_INT32, me, 2));
	return 0;
}

static void checks(void) {
	gompi_comm c;
	gompi_request r;
	int32_t x = 0;
	int asked = 0;

	OK(gompi_dup(GOMPI_WORLD, &c));
	gompi_set_check(thrice, &asked);
	FAILS(gompi_recv(GOMPI_WORLD, &x, 1, GOMPI_INT32, me, 1, NULL), GOMPI_ERR_INTERRUPTED, "interrupted");
	CHECK(asked == 3, "asked %d times", asked);
	OK(gompi_irecv(GOMPI_WORLD, &x, 1, GOMPI_INT32, me, 2, &r));
	asked = 0;
	FAILS(gompi_wait(&r, 20000, NULL), GOMPI_ERR_INTERRUPTED, "interrupted");
	CHECK(r != GOMPI_REQUEST_NULL, "the request is gone");
	asked = 0;
	gompi_set_check(sends, &asked);
	OK(gompi_wait(&r, 0, NULL));
	CHECK(x == 7 && asked == 1, "received %d, asked %d times", x, asked);
	gompi_set_check(NULL, NULL);
	OK(gompi_barrier(GOMPI_WORLD)); /* all have come so far; none is in a call on c, which breaks */
	asked = 0;
	gompi_set_check(me == 0 ? thrice : NULL, &asked);
	if (me == 0 && size > 1)
		FAILS(gompi_barrier(c), GOMPI_ERR_INTERRUPTED, "interrupted");
	gompi_set_check(NULL, NULL);
	OK(gompi_barrier(GOMPI_WORLD));
	broken(c, "interrupted");
	gompi_free(c);
}

/* A peer that has left, and will send nothing. */
static void left(void) {
	int32_t x;

	if (size > 1 && me == 0)
		FAILS(gompi_recv(GOMPI_WORLD, &x, 1, GOMPI_INT32, 1, 1, NULL), GOMPI_ERR_LEFT, "left");
}

int main(void) {
	OK(gompi_init(0));
	me = rank_of(GOMPI_WORLD);
	size = size_of(GOMPI_WORLD);
	arguments();
	messages();
	mismatch();
	timeouts();
	revoked();
	gompi_set_background(1);
	mismatch();
	timeouts();
	revoked();
	gompi_set_background(0);
	checks();
	left();
	OK(gompi_finalize());
	printf("rank %d of %d done\n", me, size);
	return 0;
}
