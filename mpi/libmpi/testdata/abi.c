/* What a program of MPI 5.0's binary interface relies on: it checks itself on any library that has it. With
 * an argument it does without the few numbers that Intel MPI 2021.18 has of a draft. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define CHECK(x) do { if (!(x)) { fprintf(stderr, "abi.c, line %d, rank %d: %s\n", __LINE__, rank, #x); MPI_Abort(MPI_COMM_WORLD, 1); } } while (0)
#define OK(x) CHECK((x) == MPI_SUCCESS)

static int rank, size, draft;

/* statuses: of a message, of one to nobody, of a request that is none, and what a program sets. */
static void statuses(void)
{
	int next = (rank + 1) % size, before = (rank + size - 1) % size, sent[3] = {rank, 2, 3}, got[5] = {0}, n;
	MPI_Status st = {.MPI_ERROR = 77}, both[2];
	MPI_Request r[2];
	MPI_Count large;
	OK(MPI_Sendrecv(sent, 3, MPI_INT, next, 5, got, 5, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &st));
	CHECK(got[0] == before && st.MPI_SOURCE == before && st.MPI_TAG == 5 && st.MPI_ERROR == 77);
	OK(MPI_Get_count(&st, MPI_INT, &n));
	CHECK(n == 3);
	OK(MPI_Get_elements_c(&st, MPI_INT, &large));
	CHECK(large == 3);
	OK(MPI_Recv(got, 5, MPI_INT, MPI_PROC_NULL, 5, MPI_COMM_WORLD, &st));
	CHECK(st.MPI_SOURCE == MPI_PROC_NULL && st.MPI_TAG == MPI_ANY_TAG);
	OK(MPI_Irecv(got, 5, MPI_INT, before, 6, MPI_COMM_WORLD, &r[0]));
	OK(MPI_Isend(sent, 2, MPI_INT, next, 6, MPI_COMM_WORLD, &r[1]));
	OK(MPI_Waitall(2, r, both));
	CHECK(r[0] == MPI_REQUEST_NULL && r[1] == MPI_REQUEST_NULL && both[0].MPI_SOURCE == before);
	OK(MPI_Get_count(&both[0], MPI_INT, &n));
	CHECK(n == 2);
	OK(MPI_Status_set_elements_c(&st, MPI_INT, (MPI_Count)1 << 33));
	OK(MPI_Get_elements_c(&st, MPI_INT, &large));
	CHECK(large == (MPI_Count)1 << 33);
	OK(MPI_Status_set_elements_c(&st, MPI_BYTE, 0x3654321f71234567));
	OK(MPI_Get_elements_c(&st, MPI_BYTE, &large));
	CHECK(large == 0x3654321f71234567);
	OK(MPI_Status_set_cancelled(&st, 1));
	OK(MPI_Test_cancelled(&st, &n));
	CHECK(n);
	OK(MPI_Status_set_source(&st, 4));
	OK(MPI_Status_get_source(&st, &n));
	CHECK(n == 4 && st.MPI_SOURCE == 4);
}

static int called;
static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
	called += *type == MPI_INT;
	for (int i = 0; i < *n; i++)
		((int *)inout)[i] += ((int *)in)[i];
}

static void add_c(void *in, void *inout, MPI_Count *n, MPI_Datatype *type)
{
	called += *type == MPI_INT;
	for (MPI_Count i = 0; i < *n; i++)
		((int *)inout)[i] += ((int *)in)[i];
}

/* reductions: in place, of pairs, by operators of the program, with weights and displacements of both
 * widths. */
static void reductions(void)
{
	int x = rank, y, all = size * (size - 1) / 2;
	struct { double value; int at; } in = {-rank, rank}, out;
	MPI_Op op, large;
	MPI_Count counts[64];
	MPI_Aint displs[64];
	int each[64];
	OK(MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
	CHECK(x == all);
	OK(MPI_Allreduce(&in, &out, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD));
	CHECK(out.at == size - 1 && out.value == 1 - size);
	OK(MPI_Op_create(add, 1, &op));
	OK(MPI_Op_create_c(add_c, 1, &large));
	OK(MPI_Allreduce(&rank, &y, 1, MPI_INT, op, MPI_COMM_WORLD));
	CHECK(y == all);
	OK(MPI_Allreduce_c(&rank, &y, 1, MPI_INT, large, MPI_COMM_WORLD));
	CHECK(y == all);
	OK(MPI_Allreduce(MPI_IN_PLACE, &called, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
	CHECK(called > 0 || size == 1); /* with one rank or another */
	OK(MPI_Op_free(&op));
	OK(MPI_Op_free(&large));
	CHECK(op == MPI_OP_NULL);
	for (int i = 0; i < size; i++)
		counts[i] = 1, displs[i] = size - 1 - i;
	OK(MPI_Allgatherv_c(&rank, 1, MPI_INT, each, counts, displs, MPI_INT, MPI_COMM_WORLD));
	for (int i = 0; i < size; i++)
		CHECK(each[size - 1 - i] == i);
}

/* datatypes: what they were made of, and messages of one with gaps. */
static void datatypes(void)
{
	MPI_Datatype vector, of;
	MPI_Count lb, extent, ni, na, nc, nt;
	int combiner, bytes, integers[3], data[6] = {rank, -1, rank, -1, rank, -1}, got[6] = {0};
	MPI_Aint address;
	MPI_Count more[3];
	OK(MPI_Type_vector(3, 1, 2, MPI_INT, &vector));
	OK(MPI_Type_commit(&vector));
	OK(MPI_Type_get_extent_c(vector, &lb, &extent));
	CHECK(lb == 0 && extent == 5 * (MPI_Count)sizeof(int));
	OK(MPI_Type_get_envelope_c(vector, &ni, &na, &nc, &nt, &combiner));
	CHECK(ni == 3 && na == 0 && nc == 0 && nt == 1 && combiner == MPI_COMBINER_VECTOR);
	OK(MPI_Type_get_contents_c(vector, ni, na, nc, nt, integers, &address, more, &of));
	CHECK(integers[0] == 3 && integers[1] == 1 && integers[2] == 2 && of == MPI_INT);
	OK(MPI_Sendrecv(data, 1, vector, rank, 0, got, 1, vector, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	CHECK(got[0] == rank && got[1] == 0 && got[2] == rank && got[4] == rank);
	OK(MPI_Type_free(&vector));
	CHECK(vector == MPI_DATATYPE_NULL);
	OK(MPI_Type_size(MPI_INTEGER, &bytes));
	CHECK(bytes == 4);
	OK(MPI_Type_size(MPI_LONG_LONG_INT, &bytes));
	CHECK(bytes == 8);
}

static int copied, deleted;
static int copy(MPI_Comm c, int key, void *extra, void *in, void *out, int *flag)
{
	(void)c, (void)key;
	copied += extra == &copied;
	*(void **)out = (char *)in + 1;
	*flag = 1;
	return MPI_SUCCESS;
}

static int delete(MPI_Comm c, int key, void *value, void *extra)
{
	(void)c, (void)key, (void)value, (void)extra;
	deleted++;
	return MPI_SUCCESS;
}

/* attributes: by functions of the program, by predefined ones, and those of MPI_COMM_WORLD. */
static void attributes(void)
{
	int ours, same, none, flag, *limit, compared;
	char at[2];
	void *value;
	MPI_Comm c;
	OK(MPI_Comm_create_keyval(copy, delete, &ours, &copied));
	OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &same, NULL));
	OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &none, NULL));
	OK(MPI_Comm_set_attr(MPI_COMM_SELF, ours, at));
	OK(MPI_Comm_set_attr(MPI_COMM_SELF, same, at));
	OK(MPI_Comm_set_attr(MPI_COMM_SELF, none, at));
	OK(MPI_Comm_dup(MPI_COMM_SELF, &c));
	OK(MPI_Comm_compare(c, MPI_COMM_SELF, &compared));
	CHECK(compared == MPI_CONGRUENT);
	OK(MPI_Comm_get_attr(c, ours, &value, &flag));
	CHECK(flag && value == at + 1 && copied == 1);
	OK(MPI_Comm_get_attr(c, same, &value, &flag));
	CHECK(flag && value == at);
	OK(MPI_Comm_get_attr(c, none, &value, &flag));
	CHECK(!flag);
	OK(MPI_Comm_free(&c));
	CHECK(c == MPI_COMM_NULL && deleted == 1);
	OK(MPI_Comm_delete_attr(MPI_COMM_SELF, ours));
	CHECK(deleted == 2);
	OK(MPI_Comm_free_keyval(&ours));
	CHECK(ours == MPI_KEYVAL_INVALID);
	OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &flag));
	CHECK(flag && *limit >= 32767);
}

static int handled;
static void handler(MPI_Comm *c, int *error, ...)
{
	int class = 0;
	MPI_Error_class(*error, &class);
	handled += *c == MPI_COMM_SELF && class == MPI_ERR_RANK;
}

static void errors(void)
{
	MPI_Errhandler h, is;
	int x = 0, class, code, length;
	char text[MPI_MAX_ERROR_STRING];
	OK(MPI_Comm_create_errhandler(handler, &h));
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, h));
	MPI_Send(&x, 1, MPI_INT, 7, 0, MPI_COMM_SELF); /* MPICH 5.0 reports success behind the handler */
	CHECK(handled == 1);
	OK(MPI_Errhandler_free(&h));
	if (!draft) {
		OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
		OK(MPI_Comm_get_errhandler(MPI_COMM_SELF, &is));
		CHECK(is == MPI_ERRORS_RETURN);
		code = MPI_Send(&x, -1, MPI_INT, 0, 0, MPI_COMM_SELF);
		OK(MPI_Error_class(code, &class));
		CHECK(class == MPI_ERR_COUNT);
	}
	OK(MPI_Add_error_class(&class));
	CHECK(class > MPI_ERR_LASTCODE);
	OK(MPI_Add_error_string(class, "mine"));
	OK(MPI_Error_string(class, text, &length));
	CHECK(!strcmp(text, "mine"));
}

/* numbers: handles as integers, and what there is to say of the interface. */
static void numbers(void)
{
	int major, minor, flag;
	char value[16];
	MPI_Comm c;
	MPI_Info info;
	MPI_Request r;
	OK(MPI_Abi_get_version(&major, &minor));
	CHECK(major == 1 && minor >= 0);
	OK(MPI_Abi_get_info(&info));
	OK(MPI_Info_get(info, "mpi_count_size", sizeof value - 1, value, &flag));
	CHECK(flag && !strcmp(value, "8"));
	OK(MPI_Info_free(&info));
	CHECK(info == MPI_INFO_NULL);
	CHECK(draft || (MPI_Comm_toint(MPI_COMM_WORLD) == 0x101 && MPI_Type_toint(MPI_DOUBLE) == 0x214 && MPI_Op_toint(MPI_SUM) == 0x21));
	CHECK(draft || (MPI_Comm_fromint(0x102) == MPI_COMM_SELF && MPI_Info_fromint(0x130) == MPI_INFO_NULL));
	OK(MPI_Comm_dup(MPI_COMM_SELF, &c));
	CHECK(draft || ((uintptr_t)c >= 0x1000 && MPI_Comm_fromint(MPI_Comm_toint(c)) == c));
	OK(MPI_Recv_init(&flag, 1, MPI_INT, 0, 0, c, &r));
	CHECK(draft || ((uintptr_t)r >= 0x1000 && MPI_Request_fromint(MPI_Request_toint(r)) == r));
	OK(MPI_Request_free(&r));
	OK(MPI_Comm_free(&c));
}

/* topologies with weights that are none, and graphs without edges. */
static void graphs(void)
{
	int next = (rank + 1) % size, before = (rank + size - 1) % size, in, out, weighted, kind, x = rank, y = -1;
	MPI_Comm ring, lone;
	OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring));
	OK(MPI_Dist_graph_neighbors_count(ring, &in, &out, &weighted));
	CHECK(in == 1 && out == 1 && !weighted);
	OK(MPI_Topo_test(ring, &kind));
	CHECK(kind == MPI_DIST_GRAPH);
	OK(MPI_Neighbor_allgather(&x, 1, MPI_INT, &y, 1, MPI_INT, ring));
	CHECK(y == before);
	OK(MPI_Comm_free(&ring));
	OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_WEIGHTS_EMPTY, 0, NULL, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &lone));
	OK(MPI_Comm_free(&lone));
	OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 0, &x, &x, &x, &x, MPI_INFO_NULL, 0, &lone));
	OK(MPI_Dist_graph_neighbors_count(lone, &in, &out, &weighted));
	CHECK(in == 0 && out == 0 && weighted);
	OK(MPI_Comm_free(&lone));
	OK(MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 1, 0, &lone));
	CHECK((rank == 0) == (lone == MPI_COMM_NULL));
	if (lone != MPI_COMM_NULL)
		OK(MPI_Comm_free(&lone));
}

/* sessions: a communicator of all ranks without MPI_COMM_WORLD. */
static void sessions(void)
{
	MPI_Session s;
	MPI_Group g;
	MPI_Comm c;
	int n, sum;
	OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s));
	OK(MPI_Session_get_num_psets(s, MPI_INFO_NULL, &n));
	CHECK(n >= 2);
	OK(MPI_Group_from_session_pset(s, "mpi://WORLD", &g));
	OK(MPI_Comm_create_from_group(g, "abi.c", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
	OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, c));
	CHECK(sum == size * (size - 1) / 2);
	OK(MPI_Comm_free(&c));
	OK(MPI_Group_free(&g));
	OK(MPI_Session_finalize(&s));
	CHECK(s == MPI_SESSION_NULL);
}

int main(int argc, char **argv)
{
	int provided;
	draft = argc > 1;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	CHECK(provided == MPI_THREAD_MULTIPLE && size <= 64);
	statuses();
	reductions();
	datatypes();
	attributes();
	errors();
	numbers();
	graphs();
	sessions();
	if (rank == 0)
		printf("abi: no errors\n");
	MPI_Finalize();
	return 0;
}
