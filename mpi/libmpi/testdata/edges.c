/* What the tests of mpi4py 4.1 have found. It is of Open MPI 5's interface, too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define CHECK(x) do { if (!(x)) { fprintf(stderr, "edges.c, line %d: %s\n", __LINE__, #x); MPI_Abort(MPI_COMM_WORLD, 1); } } while (0)

static int failing; /* which function of a generalized request fails */

static int query(void *extra, MPI_Status *status)
{
	(void)extra;
	MPI_Status_set_elements(status, MPI_BYTE, 0);
	MPI_Status_set_cancelled(status, 0);
	return failing == 0 ? MPI_ERR_BUFFER : MPI_SUCCESS;
}
static int release(void *extra) { (void)extra; return failing == 1 ? MPI_ERR_BUFFER : MPI_SUCCESS; }
static int cancel(void *extra, int complete) { (void)extra, (void)complete; return MPI_SUCCESS; }

static int class_of(int code)
{
	int class;
	MPI_Error_class(code, &class);
	return class;
}

static void requests(void)
{
	MPI_Request r = MPI_REQUEST_NULL;
	CHECK(class_of(MPI_Cancel(&r)) == MPI_ERR_REQUEST);
	for (failing = 0; failing < 3; failing++) {
		MPI_Grequest_start(query, release, cancel, NULL, &r);
		MPI_Grequest_complete(r);
		CHECK(class_of(MPI_Wait(&r, MPI_STATUS_IGNORE)) == (failing < 2 ? MPI_ERR_BUFFER : MPI_SUCCESS));
	}
}

static void memory(void)
{
	void *at;
	CHECK(class_of(MPI_Alloc_mem((MPI_Aint)1 << 62, MPI_INFO_NULL, &at)) == MPI_ERR_NO_MEM);
	CHECK(MPI_Alloc_mem(1 << 20, MPI_INFO_NULL, &at) == MPI_SUCCESS);
	MPI_Free_mem(at);
}

/* split splits an intercommunicator of rank 0 and the others by hosts: all are on one. */
static void split(int rank, int size)
{
	MPI_Comm half, both, same;
	int n;
	MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank > 0 ? 0 : 1, 7, &both);
	MPI_Comm_split_type(both, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &same);
	MPI_Comm_remote_size(same, &n);
	CHECK(n == (rank > 0 ? 1 : size - 1));
	MPI_Comm_free(&same);
	MPI_Comm_split_type(both, MPI_UNDEFINED, 0, MPI_INFO_NULL, &same);
	CHECK(same == MPI_COMM_NULL);
	MPI_Comm_free(&both);
	MPI_Comm_free(&half);
}

static void errors(void)
{
	MPI_Errhandler aborts, is;
	char text[MPI_MAX_ERROR_STRING];
	int length;
#ifdef OPEN_MPI
	aborts = dlsym(RTLD_DEFAULT, "ompi_mpi_errors_abort"); /* Debian's header does not name it */
	enum { PROC_ABORTED = 74 };
#else
	aborts = MPI_ERRORS_ABORT;
#ifdef MPI_ABI_VERSION
	enum { PROC_ABORTED = MPI_ERR_PROC_ABORTED };
#else
	enum { PROC_ABORTED = 76 };
#endif
#endif
	CHECK(MPI_Comm_set_errhandler(MPI_COMM_SELF, aborts) == MPI_SUCCESS);
	CHECK(MPI_Comm_get_errhandler(MPI_COMM_SELF, &is) == MPI_SUCCESS && is == aborts);
	CHECK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN) == MPI_SUCCESS); /* as it is of errors of no object */
	CHECK(class_of(PROC_ABORTED) == PROC_ABORTED);
	CHECK(MPI_Error_string(PROC_ABORTED, text, &length) == MPI_SUCCESS && !strcmp(text, "MPI_ERR_PROC_ABORTED: a process has aborted"));
}

#ifndef OPEN_MPI
static void add(void *in, void *inout, MPI_Count *n, MPI_Datatype *type)
{
	(void)type;
	for (MPI_Count i = 0; i < *n; i++)
		((int *)inout)[i] += ((int *)in)[i];
}

/* large: the forms for large counts of what takes a function, and of what a datatype was made with. */
static void large(int rank, int size)
{
	MPI_Op op;
	MPI_Datatype vector, of;
	MPI_Count ni, na, nc, nt, counts[1];
	MPI_Aint addresses[1];
	int in[2] = {rank, 1}, out[2], combiner, integers[3];
	MPI_Op_create_c(add, 1, &op);
	MPI_Allreduce(in, out, 2, MPI_INT, op, MPI_COMM_WORLD);
	CHECK(out[0] == size * (size - 1) / 2 && out[1] == size);
	MPI_Op_free(&op);
	MPI_Type_vector_c(3, 4, 5, MPI_INT, &vector);
	MPI_Type_get_envelope_c(vector, &ni, &na, &nc, &nt, &combiner);
	CHECK(ni == 3 && na == 0 && nc == 0 && nt == 1 && combiner == MPI_COMBINER_VECTOR);
	MPI_Type_get_contents_c(vector, ni, na, nc, nt, integers, addresses, counts, &of);
	CHECK(integers[0] == 3 && integers[1] == 4 && integers[2] == 5 && of == MPI_INT);
	MPI_Type_free(&vector);
}
#else
static void large(int rank, int size) { (void)rank, (void)size; } /* its header has none */
#endif

/* none: the null datatype is an error, although MPICH has it for datatypes that it lacks. */
static void none(void)
{
	MPI_Datatype t = MPI_DATATYPE_NULL, copy;
	CHECK(class_of(MPI_Type_dup(t, &copy)) == MPI_ERR_TYPE);
	CHECK(class_of(MPI_Type_commit(&t)) == MPI_ERR_TYPE);
	CHECK(class_of(MPI_Send(NULL, 1, t, MPI_PROC_NULL, 0, MPI_COMM_WORLD)) == MPI_ERR_TYPE);
}

#ifdef MPI_ABI_VERSION
static void halves(int size) { (void)size; } /* its header has none */
#else
/* halves adds numbers of 16 bits, which programs of Open MPI 5 find by the name of their object. */
static void halves(int size)
{
	static const unsigned short number[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400};
#ifdef MPIX_C_FLOAT16
	MPI_Datatype half = MPIX_C_FLOAT16;
#else
	MPI_Datatype half = (MPI_Datatype)dlsym(RTLD_DEFAULT, "ompi_mpi_short_float");
	CHECK(MPI_Type_c2f(half) == 74 && MPI_Type_f2c(74) == half);
#endif
	unsigned short sum = 0;
	int bytes;
	CHECK(MPI_Type_size(half, &bytes) == MPI_SUCCESS && bytes == 2);
	MPI_Allreduce(&number[1], &sum, 1, half, MPI_SUM, MPI_COMM_WORLD);
	CHECK(size <= 4 && sum == number[size]);
}
#endif

int main(int argc, char **argv)
{
	int rank, size;
	MPI_Comm parent;
	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	CHECK(MPI_Comm_get_parent(&parent) == MPI_SUCCESS && parent == MPI_COMM_NULL);
	requests();
	memory();
	split(rank, size);
	errors();
	large(rank, size);
	none();
	halves(size);
	if (rank == 0)
		printf("edges: no errors\n");
	MPI_Finalize();
	return 0;
}
