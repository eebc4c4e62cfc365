/* Messages, requests, and communicators: what is received, and what is said of it. */
#include "check.h"

enum {
	LONG = 1 << 16,
	UNUSED = 1000 /* a tag that no message has */
};

static int me, size;

/* Sends around a ring, and receives by a probe's description. */
static void ring(gompi_comm c) {
	int rank = rank_of(c), n = size_of(c), to = (rank + 1) % n, from = (rank + n - 1) % n;
	int32_t out[3] = {rank, rank + 1, rank + 2}, in[5] = {0};
	gompi_status st;
	gompi_request r;
	int found = -1;

	OK(gompi_iprobe(c, GOMPI_ANY_SOURCE, UNUSED, &found, &st));
	CHECK(found == 0 && st.source == GOMPI_ANY_SOURCE && st.count == 0, "found is %d of no message, source %d", found, st.source);
	OK(gompi_isend(c, out, 3, GOMPI_INT32, to, 7, &r));
	OK(gompi_probe(c, from, GOMPI_ANY_TAG, &st));
	CHECK(st.source == from && st.tag == 7 && st.type == GOMPI_INT32 && st.count == 3 && st.bytes == 12,
	      "probe: source %d tag %d type %d count %zu bytes %zu", st.source, st.tag, st.type, st.count, st.bytes);
	OK(gompi_iprobe(c, GOMPI_ANY_SOURCE, 7, &found, &st));
	CHECK(found == 1 && st.source == from && st.tag == 7 && st.count == 3, "found is %d, source %d count %zu", found, st.source, st.count);
	OK(gompi_recv(c, in, 5, GOMPI_INT32, GOMPI_ANY_SOURCE, 7, &st));
	CHECK(st.source == from && st.tag == 7 && st.count == 3, "recv: source %d tag %d count %zu", st.source, st.tag, st.count);
	CHECK(in[0] == from && in[2] == from + 2 && in[3] == 0, "received %d, %d, %d", in[0], in[2], in[3]);
	OK(gompi_wait(&r, 0, NULL));
	CHECK(r == GOMPI_REQUEST_NULL, "the request is %ld after wait", (long)r);
}

/* Blocking sends of long messages, which wait for their receives. */
static void long_messages(void) {
	int64_t *buf = malloc(LONG * sizeof *buf);

	for (int i = 0; i < LONG; i++)
		buf[i] = me + i;
	if (size > 1 && me == 0)
		OK(gompi_send(GOMPI_WORLD, buf, LONG, GOMPI_INT64, 1, 1));
	if (me == 1) {
		OK(gompi_recv(GOMPI_WORLD, buf, LONG, GOMPI_INT64, 0, 1, NULL));
		CHECK(buf[0] == 0 && buf[LONG - 1] == LONG - 1, "received %ld to %ld", buf[0], buf[LONG - 1]);
	}
	free(buf);
}

/* Many receives at once, of which test tells the end. */
static void requests(void) {
	enum { MANY = 40 };
	int64_t in[MANY], out[MANY];
	gompi_request r[2 * MANY];
	gompi_status st;
	int left = 2 * MANY, done;

	for (int i = 0; i < MANY; i++) {
		out[i] = 1000 * me + i;
		OK(gompi_irecv(GOMPI_WORLD, &in[i], 1, GOMPI_INT64, (me + size - 1) % size, i, &r[i]));
	}
	for (int i = 0; i < MANY; i++)
		OK(gompi_isend(GOMPI_WORLD, &out[i], 1, GOMPI_INT64, (me + 1) % size, i, &r[MANY + i]));
	while (left > 0) {
		left = 0;
		for (int i = 0; i < 2 * MANY; i++) {
			int was = r[i] != GOMPI_REQUEST_NULL;

			OK(gompi_test(&r[i], &done, &st));
			CHECK(done == (r[i] == GOMPI_REQUEST_NULL), "done is %d, the request %ld", done, (long)r[i]);
			CHECK(!was || !done || i >= MANY || st.tag == i, "the tag of receive %d is %d", i, st.tag);
			left += !done;
		}
	}
	for (int i = 0; i < MANY; i++)
		CHECK(in[i] == 1000 * ((me + size - 1) % size) + i, "message %d has %ld", i, in[i]);
	OK(gompi_wait(&r[0], 0, &st));
	CHECK(st.source == GOMPI_ANY_SOURCE && st.type == 0 && st.count == 0, "of no request: source %d", st.source);
}

static void communicators(void) {
	gompi_comm twin, again;
	int64_t x = 1;

	OK(gompi_dup(GOMPI_WORLD, &twin));
	OK(gompi_allreduce(twin, &x, &x, 1, GOMPI_INT64, GOMPI_SUM));
	CHECK(x == size, "the sum is %ld", x);
	ring(twin);
	OK(gompi_free(twin));
	FAILS(gompi_barrier(twin), GOMPI_ERR_ARGUMENT, "there is no communicator");
	OK(gompi_dup(GOMPI_WORLD, &again));
	CHECK(again != twin, "the number of a communicator is used again");
	OK(gompi_free(again));
}

/* A receive that waits when its communicator is freed. */
static void freed_request(void) {
	gompi_comm c;
	gompi_request r;
	int32_t x;

	OK(gompi_dup(GOMPI_WORLD, &c));
	OK(gompi_irecv(c, &x, 1, GOMPI_INT32, me, 5, &r));
	OK(gompi_free(c));
	FAILS(gompi_wait(&r, 0, NULL), GOMPI_ERR_OTHER, "closed");
	CHECK(r == GOMPI_REQUEST_NULL, "the request is %ld", (long)r);
}

int main(void) {
	CHECK(strcmp(gompi_version(), WANT_VERSION) == 0, "the version is %s", gompi_version());
	CHECK(gompi_error()[0] == 0, "an error before all calls: %s", gompi_error());
	FAILS(gompi_rank(GOMPI_WORLD, &me), GOMPI_ERR_OTHER, "gompi_init has not been called");
	OK(gompi_init(0));
	FAILS(gompi_init(0), GOMPI_ERR_OTHER, "called once");
	me = rank_of(GOMPI_WORLD);
	size = size_of(GOMPI_WORLD);
	ring(GOMPI_WORLD);
	long_messages();
	requests();
	communicators();
	freed_request();
	OK(gompi_finalize());
	FAILS(gompi_rank(GOMPI_WORLD, &me), GOMPI_ERR_OTHER, "gompi_finalize has been called");
	FAILS(gompi_init(0), GOMPI_ERR_OTHER, "gompi_finalize has been called");
	printf("rank %d of %d done\n", me, size);
	return 0;
}
