/* What MPI says of the job and of its objects before the program has made any: arguments are the number of this
 * program among those of the job, and whether the ranks have one clock. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(x) do { if (!(x)) { fprintf(stderr, "predefined.c, line %d: %s\n", __LINE__, #x); MPI_Abort(MPI_COMM_WORLD, 1); } } while (0)
#define OK(x) CHECK((x) == MPI_SUCCESS)

static int class_of(int code)
{
	int class;
	MPI_Error_class(code, &class);
	return class;
}

static int attribute(int keyval)
{
	int *value, flag;
	OK(MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, &value, &flag));
	CHECK(flag);
	return *value;
}

static void attributes(int size, int program, int one_clock)
{
	CHECK(attribute(MPI_TAG_UB) >= 32767);
	CHECK(attribute(MPI_HOST) == MPI_PROC_NULL);
	CHECK(attribute(MPI_IO) == MPI_ANY_SOURCE);
	CHECK(attribute(MPI_WTIME_IS_GLOBAL) == one_clock);
	CHECK(attribute(MPI_APPNUM) == program);
	CHECK(attribute(MPI_LASTUSEDCODE) >= MPI_ERR_LASTCODE);
	CHECK(attribute(MPI_UNIVERSE_SIZE) == size);
	int value = 1;
	CHECK(class_of(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_APPNUM, &value)) == MPI_ERR_KEYVAL);
	CHECK(class_of(MPI_Comm_delete_attr(MPI_COMM_WORLD, MPI_TAG_UB)) == MPI_ERR_KEYVAL);
}

static void names(void)
{
	char name[MPI_MAX_PROCESSOR_NAME], own[MPI_MAX_PROCESSOR_NAME], value[MPI_MAX_PROCESSOR_NAME];
	int length, flag;
	OK(MPI_Get_processor_name(name, &length));
	gethostname(own, sizeof own);
	CHECK(strcmp(name, own) == 0 && length == (int)strlen(own));
	OK(MPI_Info_get(MPI_INFO_ENV, "host", sizeof value - 1, value, &flag));
	CHECK(flag && strcmp(value, own) == 0);
	OK(MPI_Comm_get_name(MPI_COMM_SELF, name, &length));
	CHECK(strcmp(name, "MPI_COMM_SELF") == 0);
}

static void windows(void)
{
	MPI_Win w;
	void *base, *value;
	int flag;
	OK(MPI_Win_allocate(12, 4, MPI_INFO_NULL, MPI_COMM_SELF, &base, &w));
	OK(MPI_Win_get_attr(w, MPI_WIN_BASE, &value, &flag));
	CHECK(flag && value == base);
	OK(MPI_Win_get_attr(w, MPI_WIN_SIZE, &value, &flag));
	CHECK(flag && *(MPI_Aint *)value == 12);
	OK(MPI_Win_get_attr(w, MPI_WIN_DISP_UNIT, &value, &flag));
	CHECK(flag && *(int *)value == 4);
	OK(MPI_Win_get_attr(w, MPI_WIN_CREATE_FLAVOR, &value, &flag));
	CHECK(flag && *(int *)value == MPI_WIN_FLAVOR_ALLOCATE);
	OK(MPI_Win_get_attr(w, MPI_WIN_MODEL, &value, &flag));
	CHECK(flag && *(int *)value == MPI_WIN_UNIFIED);
	MPI_Win_free(&w);
}

/* blanks are part of what is set in C. */
static void blanks(void)
{
	MPI_Info i;
	char text[MPI_MAX_INFO_KEY];
	int flag;
	MPI_Info_create(&i);
	OK(MPI_Info_set(i, " key ", " a b "));
	OK(MPI_Info_get_nthkey(i, 0, text));
	CHECK(strcmp(text, " key ") == 0);
	OK(MPI_Info_get(i, " key ", sizeof text - 1, text, &flag));
	CHECK(flag && strcmp(text, " a b ") == 0);
	OK(MPI_Info_get(i, "key", sizeof text - 1, text, &flag));
	CHECK(!flag);
	MPI_Info_free(&i);
}

static int asked, freed;

static int query(void *extra, MPI_Status *status)
{
	(void)extra;
	asked++;
	MPI_Status_set_elements(status, MPI_INT, asked);
	MPI_Status_set_cancelled(status, 0);
	return MPI_SUCCESS;
}
static int release(void *extra) { return (void)extra, freed++, MPI_SUCCESS; }
static int cancel(void *extra, int complete) { return (void)extra, (void)complete, MPI_SUCCESS; }

/* generalized asks for a status each time, and frees once, whatever was asked before. */
static void generalized(void)
{
	MPI_Request r, two[2];
	MPI_Status st;
	int flag, n;
	MPI_Grequest_start(query, release, cancel, NULL, &r);
	MPI_Grequest_complete(r);
	for (int i = 1; i <= 2; i++) {
		OK(MPI_Request_get_status(r, &flag, &st));
		MPI_Get_count(&st, MPI_INT, &n);
		CHECK(flag && asked == i && n == i && freed == 0);
	}
	MPI_Request_free(&r);
	CHECK(freed == 1 && r == MPI_REQUEST_NULL);
	for (int i = 0; i < 2; i++)
		MPI_Grequest_start(query, release, cancel, NULL, &two[i]);
	MPI_Grequest_complete(two[0]);
	OK(MPI_Testall(2, two, &flag, MPI_STATUSES_IGNORE));
	CHECK(!flag && freed == 1);
	MPI_Request_free(&two[0]);
	CHECK(freed == 2);
	MPI_Grequest_complete(two[1]);
	OK(MPI_Wait(&two[1], &st));
	CHECK(freed == 3);
}

static MPI_Comm told;
static int code_told;

static void tell(MPI_Comm *comm, int *code, ...)
{
	told = *comm;
	code_told = *code;
}

/* unattached makes errors of no object: they are MPI_COMM_SELF's once that has an error handler. */
static void unattached(void)
{
	MPI_Errhandler tells;
	MPI_Datatype t;
	MPI_Request r;
	MPI_Comm none = MPI_COMM_NULL;
	MPI_Comm_create_errhandler(tell, &tells);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, tells);
	MPI_Type_contiguous(-1, MPI_INT, &t);
	CHECK(told == MPI_COMM_WORLD && class_of(code_told) == MPI_ERR_COUNT);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, tells);
	told = MPI_COMM_NULL;
	MPI_Type_contiguous(-1, MPI_INT, &t);
	CHECK(told == MPI_COMM_SELF && class_of(code_told) == MPI_ERR_COUNT);
	told = MPI_COMM_NULL;
	MPI_Barrier(none);
	CHECK(told == MPI_COMM_SELF && class_of(code_told) == MPI_ERR_COMM);
	MPI_Comm_spawn("x", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &none, MPI_ERRCODES_IGNORE);
	CHECK(told == MPI_COMM_WORLD && class_of(code_told) == MPI_ERR_UNSUPPORTED_OPERATION);
	MPI_Send(&r, -1, MPI_BYTE, 0, 0, MPI_COMM_SELF);
	CHECK(told == MPI_COMM_SELF && class_of(code_told) == MPI_ERR_COUNT);
	MPI_Errhandler_free(&tells);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	CHECK(class_of(MPI_Type_contiguous(-1, MPI_INT, &t)) == MPI_ERR_COUNT);
}

int main(int argc, char **argv)
{
	int rank, size, one = 1, all;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	attributes(size, argc > 1 ? atoi(argv[1]) : 0, argc > 2 ? atoi(argv[2]) : 1);
	names();
	windows();
	blanks();
	generalized();
	unattached();
	MPI_Reduce(&one, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("predefined: no errors\n");
	MPI_Finalize();
	return 0;
}
