/* Fault tolerance: without an argument nobody dies; with "kill FILE" one rank does, and later one more. The
 * installed headers of Open MPI lack the functions: they are looked up. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef MPIX_ERR_PROC_FAILED /* of Open MPI 5 */
#define MPIX_ERR_PROC_FAILED 75
#define MPIX_ERR_REVOKED 77
#endif

#define CHECK(x) do { if (!(x)) { fprintf(stderr, "failures.c, line %d, rank %d: %s\n", __LINE__, rank, #x); MPI_Abort(MPI_COMM_WORLD, 1); } } while (0)
#define OK(x) CHECK((x) == MPI_SUCCESS)

static int rank, size;

static int (*look(const char *name))()
{
	int (*f)();
	*(void **)&f = dlsym(RTLD_DEFAULT, name);
	if (!f) {
		fprintf(stderr, "there is no %s\n", name);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return f;
}
#define CALL(name, ...) look("MPIX_Comm_" #name)(__VA_ARGS__)

static int class_of(int code)
{
	int class;
	MPI_Error_class(code, &class);
	return class;
}

static MPI_Comm copy_of(MPI_Comm comm)
{
	MPI_Comm d;
	OK(MPI_Comm_dup(comm, &d));
	OK(MPI_Comm_set_errhandler(d, MPI_ERRORS_RETURN));
	return d;
}

/* agree has each rank lack another bit. */
static void agree(void)
{
	MPI_Request r;
	int flag = ~(1 << rank), want = ~((1 << size) - 1), done;
	OK(CALL(agree, MPI_COMM_WORLD, &flag));
	CHECK(flag == want);
	flag = rank < size - 1 ? -1 : -99; /* -99 is gompi's number for what is not valid */
	OK(CALL(agree, MPI_COMM_WORLD, &flag));
	CHECK(flag == -99);
	for (int late = 0; late < size; late++) { /* it is no barrier, and does not wait for one */
		flag = ~(1 << rank);
		if (rank != late)
			OK(CALL(iagree, MPI_COMM_WORLD, &flag, &r));
		OK(MPI_Barrier(MPI_COMM_WORLD));
		if (rank != late) {
			OK(MPI_Test(&r, &done, MPI_STATUS_IGNORE));
			CHECK(!done && flag == ~(1 << rank));
		}
		OK(MPI_Barrier(MPI_COMM_WORLD));
		if (rank == late)
			OK(CALL(iagree, MPI_COMM_WORLD, &flag, &r));
		OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
		CHECK(flag == want);
	}
	flag = 5;
	OK(CALL(agree, MPI_COMM_SELF, &flag));
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	CHECK(flag == 5 && CALL(iagree, MPI_COMM_SELF, NULL, &r) == MPI_ERR_ARG);
}

static void no_one_failed(MPI_Comm comm)
{
	MPI_Group g;
	int n, yes = 1;
	OK(CALL(get_failed, comm, &g));
	OK(MPI_Group_size(g, &n));
	CHECK(n == 0);
	OK(CALL(ack_failed, comm, size, &n));
	CHECK(n == 0);
	OK(CALL(failure_ack, comm));
	OK(CALL(failure_get_acked, comm, &g));
	OK(MPI_Group_size(g, &n));
	OK(CALL(is_revoked, comm, &yes));
	CHECK(n == 0 && !yes);
}

/* revoked: a revocation wakes the others, who wait in all kinds of calls. */
static void revoked(void)
{
	MPI_Comm c = copy_of(MPI_COMM_WORLD);
	MPI_Request r, barrier;
	int x = 0, yes, error;
	char text[MPI_MAX_ERROR_STRING];
	OK(MPI_Comm_set_name(c, "ocean"));
	OK(look("MPI_Barrier_init")(c, MPI_INFO_NULL, &barrier));
	for (int i = 0; i < 100; i++) /* so that they are done in C */
		OK(MPI_Barrier(c));
	OK(MPI_Irecv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 3, c, &r));
	if (rank == 0) {
		for (int i = 1; i < size; i++) /* they have begun */
			OK(MPI_Recv(&x, 1, MPI_INT, i, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		OK(CALL(revoke, c));
		OK(CALL(is_revoked, c, &yes));
		CHECK(yes);
	} else {
		OK(MPI_Start(&barrier));
		OK(MPI_Send(&rank, 1, MPI_INT, 0, 0, MPI_COMM_WORLD));
		if (rank % 2) {
			error = MPI_Recv(&x, 1, MPI_INT, 0, 4, c, MPI_STATUS_IGNORE);
			CHECK(class_of(error) == MPIX_ERR_REVOKED);
		} else {
			CHECK(class_of(MPI_Barrier(c)) == MPIX_ERR_REVOKED);
		}
	}
	CHECK(class_of(MPI_Wait(&r, MPI_STATUS_IGNORE)) == MPIX_ERR_REVOKED);
	if (rank != 0)
		CHECK(class_of(MPI_Wait(&barrier, MPI_STATUS_IGNORE)) == MPIX_ERR_REVOKED);
	OK(MPI_Request_free(&barrier));
	error = MPI_Barrier(c);
	MPI_Error_string(error, text, &x);
	CHECK(class_of(error) == MPIX_ERR_REVOKED && strstr(text, "MPI_Barrier on ocean: ") && strstr(text, "revoked it"));
	CHECK(class_of(MPI_Send(&x, 1, MPI_INT, (rank + 1) % size, 0, c)) == MPIX_ERR_REVOKED);
	CHECK(class_of(MPI_Send(&x, 1, MPI_INT, MPI_PROC_NULL, 0, c)) == MPIX_ERR_REVOKED);
	CHECK(class_of(MPI_Recv(&x, 1, MPI_INT, MPI_PROC_NULL, 0, c, MPI_STATUS_IGNORE)) == MPIX_ERR_REVOKED);
	OK(CALL(is_revoked, c, &yes));
	CHECK(yes);
	yes = rank + 8;
	OK(CALL(agree, c, &yes)); /* works nevertheless */
	CHECK(yes == 8);
	OK(MPI_Comm_free(&c));
	OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* shrink of a communicator that was revoked. */
static void shrink(MPI_Comm comm)
{
	MPI_Comm c = copy_of(comm), s[2];
	MPI_Request r;
	int n, m, inter, flag = 6 + rank % 2;
	if (rank == size - 1)
		OK(CALL(revoke, c));
	OK(CALL(shrink, c, &s[0]));
	OK(CALL(ishrink, c, &s[1], &r));
	OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	OK(MPI_Comm_free(&c));
	MPI_Comm_test_inter(comm, &inter);
	for (int i = 0; i < 2; i++) {
		OK(MPI_Comm_compare(comm, s[i], &n));
		CHECK(n == MPI_CONGRUENT);
		n = m = 1;
		OK(MPI_Allreduce(&m, &n, 1, MPI_INT, MPI_SUM, s[i]));
		(inter ? MPI_Comm_remote_size : MPI_Comm_size)(s[i], &m);
		CHECK(n == m);
		OK(CALL(agree, s[i], &flag));
		CHECK(flag == 6 || inter);
		no_one_failed(s[i]);
		OK(MPI_Comm_free(&s[i]));
	}
}

/* between has two groups agree: each gets what the other one gives. */
static void between(void)
{
	MPI_Comm half, inter;
	int low = rank < size / 2, flag = low ? 3 : 5;
	OK(MPI_Comm_split(MPI_COMM_WORLD, low, 0, &half));
	OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? size / 2 : 0, 9, &inter));
	OK(CALL(agree, inter, &flag));
	CHECK(flag == (low ? 5 : 3));
	shrink(inter);
	OK(MPI_Comm_free(&inter));
	OK(MPI_Comm_free(&half));
}

/* is_rank checks that a group is one rank of another. */
static void is_rank(MPI_Group g, MPI_Comm comm, int want)
{
	MPI_Group all;
	int n, zero = 0, r;
	OK(MPI_Comm_group(comm, &all));
	OK(MPI_Group_size(g, &n));
	CHECK(n == 1);
	OK(MPI_Group_translate_ranks(g, 1, &zero, all, &r));
	CHECK(r == want);
}

static const char *file; /* that ranks can write */

/* lost: what needs all ranks of a file fails when one has died, and the rest goes on. */
static void lost(MPI_File f, int x)
{
	int y = -1;
	MPI_Status st;
	CHECK(class_of(MPI_File_write_ordered(f, &x, 1, MPI_INT, &st)) == MPIX_ERR_PROC_FAILED);
	CHECK(class_of(MPI_File_set_size(f, 100)) == MPIX_ERR_PROC_FAILED);
	/* Where no rank may still be about to write what was to be in order. */
	OK(MPI_File_write_at(f, (x + 8) * sizeof x, &x, 1, MPI_INT, &st));
	OK(MPI_File_read_at(f, (x + 8) * sizeof x, &y, 1, MPI_INT, &st));
	CHECK(x == y);
	OK(MPI_File_write_shared(f, &x, 1, MPI_INT, &st)); /* the lock of who has died is gone */
	CHECK(class_of(MPI_File_close(&f)) == MPIX_ERR_PROC_FAILED && f == MPI_FILE_NULL);
}

/* kill_one ends the rank with a number in comm while the others wait for it, and returns a communicator of
 * these. */
static MPI_Comm kill_one(MPI_Comm comm, int victim)
{
	MPI_Comm s;
	MPI_Group g;
	MPI_Request r;
	MPI_File f;
	int me, n, x, flag, error, left;
	MPI_Comm_rank(comm, &me);
	MPI_Comm_size(comm, &n);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	OK(MPI_File_open(comm, file, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f));
	OK(MPI_Irecv(&x, 1, MPI_INT, victim, 1, comm, &r));
	for (int i = 0; i < 100; i++) /* so that they are done in C */
		OK(MPI_Barrier(comm));
	if (me == victim) {
		for (int i = 1; i < n; i++) /* they are past the barriers */
			OK(MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 2, comm, MPI_STATUS_IGNORE));
		raise(SIGKILL);
	}
	OK(MPI_Send(&me, 1, MPI_INT, victim, 2, comm));
	CHECK(class_of(MPI_Barrier(comm)) == MPIX_ERR_PROC_FAILED);
	CHECK(class_of(MPI_Wait(&r, MPI_STATUS_IGNORE)) == MPIX_ERR_PROC_FAILED);
	lost(f, me);
	OK(CALL(is_revoked, comm, &flag));
	CHECK(!flag);
	OK(CALL(get_failed, comm, &g));
	is_rank(g, comm, victim);
	OK(CALL(failure_get_acked, comm, &g));
	OK(MPI_Group_size(g, &x));
	CHECK(x == 0);
	flag = ~(1 << me), left = ~(((1 << n) - 1) & ~(1 << victim));
	error = CALL(agree, comm, &flag);
	CHECK(class_of(error) == MPIX_ERR_PROC_FAILED && flag == left);
	if (me == (victim + 1) % n) /* is not enough */
		OK(CALL(failure_ack, comm));
	flag = ~(1 << me);
	CHECK(class_of(CALL(agree, comm, &flag)) == MPIX_ERR_PROC_FAILED && flag == left);
	OK(CALL(ack_failed, comm, n, &x));
	CHECK(x == 1);
	OK(CALL(failure_get_acked, comm, &g));
	is_rank(g, comm, victim);
	flag = ~(1 << me);
	OK(CALL(agree, comm, &flag));
	CHECK(flag == left);
	OK(CALL(revoke, comm));
	OK(CALL(is_revoked, comm, &flag));
	CHECK(flag);
	OK(CALL(shrink, comm, &s));
	OK(MPI_Comm_size(s, &x));
	CHECK(x == n - 1);
	OK(MPI_Allreduce(&rank, &x, 1, MPI_INT, MPI_SUM, s));
	OK(MPI_Comm_rank(s, &left));
	CHECK(left == me - (me > victim));
	no_one_failed(s);
	return s;
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc > 1) {
		file = argv[2];
		MPI_Comm c = kill_one(MPI_COMM_WORLD, 1);
		c = kill_one(c, 0);
		MPI_Comm_rank(c, &rank);
	} else {
		agree();
		no_one_failed(MPI_COMM_WORLD);
		revoked();
		shrink(MPI_COMM_WORLD);
		if (size > 1)
			between();
	}
	OK(MPI_Finalize());
	if (rank == 0)
		printf("failures: no errors\n");
	return 0;
}
