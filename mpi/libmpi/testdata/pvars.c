/* Performance variables of the tools' interface, for calls whose number and bytes are known: those that C
 * does and those that enter Go. With "counted" as argument calls are counted already, by -stats. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(x) do { if (!(x)) { fprintf(stderr, "pvars.c, line %d: %s\n", __LINE__, #x); MPI_Abort(MPI_COMM_WORLD, 1); } } while (0)
#define OK(x) CHECK((x) == MPI_SUCCESS)

enum { CALLS, TIME, BYTES, SENT, VARIABLES };
static const struct { const char *name; int class; } known[VARIABLES] = {
	{"gompi_calls", MPI_T_PVAR_CLASS_COUNTER}, {"gompi_time_in_calls", MPI_T_PVAR_CLASS_TIMER},
	{"gompi_bytes", MPI_T_PVAR_CLASS_COUNTER}, {"gompi_bytes_sent", MPI_T_PVAR_CLASS_COUNTER},
};
enum { SHORT = 100, LONG = 300000 };

/* A tool is a session with a handle for each variable. */
struct tool {
	MPI_T_pvar_session session;
	MPI_T_pvar_handle h[VARIABLES];
};

static void begin(struct tool *t)
{
	OK(MPI_T_pvar_session_create(&t->session));
	for (int k = 0; k < VARIABLES; k++) {
		int i, count;
		OK(MPI_T_pvar_get_index(known[k].name, known[k].class, &i));
		OK(MPI_T_pvar_handle_alloc(t->session, i, NULL, &t->h[k], &count));
		CHECK(count == 1);
	}
}

static unsigned long long value(struct tool *t, int k)
{
	unsigned long long n;
	OK(MPI_T_pvar_read(t->session, t->h[k], &n));
	return n;
}

/* expect checks that a tool has seen these calls, and no others. */
static void expect(struct tool *t, unsigned long long calls, unsigned long long bytes, unsigned long long sent)
{
	unsigned long long c = value(t, CALLS), b = value(t, BYTES), s = value(t, SENT);
	if (c != calls || b != bytes || s != sent) {
		fprintf(stderr, "pvars.c: %llu calls, %llu bytes, %llu sent; want %llu, %llu, %llu\n", c, b, s, calls, bytes, sent);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

/* One round is 9 calls: four messages each way, two of them of one call, and two collectives. */
enum { ROUND_CALLS = 9, ROUND_SENT = 3 * SHORT + LONG, ROUND_BYTES = 2 * ROUND_SENT + 8 };
static void work(void)
{
	static char out[LONG], in[LONG];
	int rank, size;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	int to = (rank + 1) % size, from = (rank + size - 1) % size;
	for (int i = 0; i < 3; i++) {
		OK(MPI_Send(out, SHORT, MPI_CHAR, to, 1, MPI_COMM_WORLD));
		OK(MPI_Recv(in, SHORT, MPI_CHAR, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	}
	OK(MPI_Sendrecv(out, LONG, MPI_CHAR, to, 2, in, LONG, MPI_CHAR, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	long long one = 1, sum;
	OK(MPI_Allreduce(&one, &sum, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD));
	OK(MPI_Barrier(MPI_COMM_WORLD));
	CHECK(sum == size);
}

static void describe(void)
{
	int n;
	OK(MPI_T_pvar_get_num(&n));
	CHECK(n == VARIABLES);
	for (int i = 0; i < n; i++) {
		char name[64], text[256], few[4];
		int name_len = sizeof name, text_len = sizeof text, few_len = sizeof few, class, bind, readonly, continuous, atomic, verbosity, index, none = 0;
		MPI_Datatype type;
		MPI_T_enum e;
		OK(MPI_T_pvar_get_info(i, name, &name_len, &verbosity, &class, &type, &e, text, &text_len, &bind, &readonly, &continuous, &atomic));
		CHECK(name_len == (int)strlen(name) + 1 && text_len == (int)strlen(text) + 1 && type == MPI_UNSIGNED_LONG_LONG);
		CHECK(bind == MPI_T_BIND_NO_OBJECT && !readonly && !continuous && verbosity == MPI_T_VERBOSITY_USER_BASIC);
		OK(MPI_T_pvar_get_index(name, class, &index));
		CHECK(index == i);
		OK(MPI_T_pvar_get_info(i, few, &few_len, NULL, NULL, NULL, NULL, NULL, &none, NULL, NULL, NULL, NULL));
		CHECK(strcmp(few, "gom") == 0 && few_len == 4 && none == text_len);
	}
	CHECK(MPI_T_pvar_get_index("gompi_calls", MPI_T_PVAR_CLASS_TIMER, &n) == MPI_T_ERR_INVALID_NAME);
	CHECK(MPI_T_pvar_get_info(VARIABLES, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == MPI_T_ERR_INVALID_INDEX);
}

int main(int argc, char **argv)
{
	struct tool early, late;
	int provided, counted = argc > 1 && strcmp(argv[1], "counted") == 0;
	unsigned long long n, set = 1000;
	OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
	describe();
	begin(&early);
	OK(MPI_T_pvar_start(early.session, MPI_T_PVAR_ALL_HANDLES)); /* from MPI_Init on */
	OK(MPI_T_pvar_start(early.session, early.h[CALLS]));         /* once more */
	OK(MPI_Init(&argc, &argv));
	expect(&early, 0, 0, 0);

	double from = MPI_Wtime();
	work();
	expect(&early, ROUND_CALLS, ROUND_BYTES, ROUND_SENT);
	n = value(&early, TIME);
	CHECK(n > 0 && n <= (MPI_Wtime() - from) * 1e9 + 1);

	begin(&late); /* sees what comes now, while it is started */
	work();
	expect(&late, 0, 0, 0);
	OK(MPI_T_pvar_start(late.session, MPI_T_PVAR_ALL_HANDLES));
	work();
	OK(MPI_T_pvar_stop(early.session, MPI_T_PVAR_ALL_HANDLES));
	work();
	expect(&early, 3 * ROUND_CALLS, 3 * ROUND_BYTES, 3 * ROUND_SENT);
	expect(&late, 2 * ROUND_CALLS, 2 * ROUND_BYTES, 2 * ROUND_SENT);
	OK(MPI_T_pvar_stop(late.session, MPI_T_PVAR_ALL_HANDLES));
	work(); /* no tool counts this */
	expect(&late, 2 * ROUND_CALLS, 2 * ROUND_BYTES, 2 * ROUND_SENT);

	OK(MPI_T_pvar_start(late.session, MPI_T_PVAR_ALL_HANDLES));
	OK(MPI_T_pvar_readreset(late.session, late.h[CALLS], &n));
	CHECK(n == 2 * ROUND_CALLS && value(&late, CALLS) == 0);
	OK(MPI_T_pvar_write(late.session, late.h[SENT], &set));
	OK(MPI_T_pvar_reset(late.session, late.h[BYTES]));
	work();
	expect(&late, ROUND_CALLS, ROUND_BYTES, set + ROUND_SENT);

	CHECK(MPI_T_pvar_read(early.session, late.h[CALLS], &n) == MPI_T_ERR_INVALID_HANDLE);
	CHECK(MPI_T_pvar_read(MPI_T_PVAR_SESSION_NULL, late.h[CALLS], &n) == MPI_T_ERR_INVALID_SESSION);
	CHECK(MPI_T_pvar_read(late.session, MPI_T_PVAR_ALL_HANDLES, &n) == MPI_T_ERR_INVALID_HANDLE);
	OK(MPI_T_pvar_handle_free(late.session, &late.h[TIME]));
	CHECK(late.h[TIME] == MPI_T_PVAR_HANDLE_NULL);
	OK(MPI_T_pvar_session_free(&late.session)); /* with the other handles, which are started */
	CHECK(late.session == MPI_T_PVAR_SESSION_NULL && MPI_T_pvar_session_free(&late.session) == MPI_T_ERR_INVALID_SESSION);
	if (!counted) { /* nobody counts now: what was counted before is not seen again */
		work();
		OK(MPI_T_pvar_start(early.session, MPI_T_PVAR_ALL_HANDLES));
		expect(&early, 3 * ROUND_CALLS, 3 * ROUND_BYTES, 3 * ROUND_SENT);
	}
	int rank;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Finalize();
	OK(MPI_T_finalize());
	CHECK(MPI_T_pvar_get_num(&provided) == MPI_T_ERR_NOT_INITIALIZED);
	if (rank == 0)
		printf("pvars: no errors\n");
	return 0;
}
