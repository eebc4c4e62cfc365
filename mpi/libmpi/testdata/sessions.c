/* Sessions without MPI_Init, with a header that may be older than they are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifndef MPI_SESSION_NULL /* Open MPI 4.1 */
typedef void *MPI_Session;
typedef void MPI_Session_errhandler_function(MPI_Session *, int *, ...);
#define MPI_SESSION_NULL ((MPI_Session)dlsym(RTLD_DEFAULT, "ompi_mpi_instance_null"))
enum { MPI_ERR_SESSION = 78 };
#endif
#ifdef MPI_ABI_VERSION /* it has no Fortran */
typedef int MPI_Fint;
#define C2F "MPI_Session_toint"
#define F2C "MPI_Session_fromint"
#else
#define C2F "MPI_Session_c2f"
#define F2C "MPI_Session_f2c"
#endif

/* They are looked up, since the library that the program is linked with need not have them. */
static int (*init)(MPI_Info, MPI_Errhandler, MPI_Session *);
static int (*finalize)(MPI_Session *);
static int (*num_psets)(MPI_Session, MPI_Info, int *);
static int (*nth_pset)(MPI_Session, MPI_Info, int, int *, char *);
static int (*pset_info)(MPI_Session, const char *, MPI_Info *);
static int (*get_info)(MPI_Session, MPI_Info *);
static int (*create_errhandler)(MPI_Session_errhandler_function *, MPI_Errhandler *);
static int (*set_errhandler)(MPI_Session, MPI_Errhandler);
static int (*get_errhandler)(MPI_Session, MPI_Errhandler *);
static int (*call_errhandler)(MPI_Session, int);
static MPI_Fint (*c2f)(MPI_Session);
static MPI_Session (*f2c)(MPI_Fint);
static int (*from_pset)(MPI_Session, const char *, MPI_Group *);
static int (*create_from_group)(MPI_Group, const char *, MPI_Info, MPI_Errhandler, MPI_Comm *);

static void look_up(void)
{
#define LOOK_UP(variable, name) *(void **)&variable = dlsym(RTLD_DEFAULT, name)
	LOOK_UP(init, "MPI_Session_init");
	LOOK_UP(finalize, "PMPI_Session_finalize");
	LOOK_UP(num_psets, "MPI_Session_get_num_psets");
	LOOK_UP(nth_pset, "MPI_Session_get_nth_pset");
	LOOK_UP(pset_info, "MPI_Session_get_pset_info");
	LOOK_UP(get_info, "MPI_Session_get_info");
	LOOK_UP(create_errhandler, "MPI_Session_create_errhandler");
	LOOK_UP(set_errhandler, "MPI_Session_set_errhandler");
	LOOK_UP(get_errhandler, "MPI_Session_get_errhandler");
	LOOK_UP(call_errhandler, "MPI_Session_call_errhandler");
	LOOK_UP(c2f, C2F);
	LOOK_UP(f2c, F2C);
	LOOK_UP(from_pset, "MPI_Group_from_session_pset");
	LOOK_UP(create_from_group, "MPI_Comm_create_from_group");
}

#define CHECK(x) do { if (!(x)) { fprintf(stderr, "sessions.c, line %d: %s\n", __LINE__, #x); abort(); } } while (0)
#define OK(x) CHECK((x) == MPI_SUCCESS)

static int handled;
static MPI_Session handled_session;
static void handler(MPI_Session *session, int *error, ...)
{
	handled_session = *session;
	MPI_Error_class(*error, &handled);
}

static void on_comm(MPI_Comm *comm, int *error, ...) { (void)comm, (void)error; }

/* sum adds the ranks of a process set, in a communicator made from it. */
static int sum(MPI_Session s, const char *pset, const char *tag, int *size)
{
	MPI_Group g;
	MPI_Comm c;
	int rank, all;
	OK(from_pset(s, pset, &g));
	OK(create_from_group(g, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
	OK(MPI_Group_free(&g));
	MPI_Comm_rank(c, &rank);
	MPI_Comm_size(c, size);
	OK(MPI_Allreduce(&rank, &all, 1, MPI_INT, MPI_SUM, c));
	OK(MPI_Comm_free(&c));
	return all;
}

static void psets(MPI_Session s)
{
	char name[64], value[16];
	int n, found = 0, flag;
	OK(num_psets(s, MPI_INFO_NULL, &n));
	for (int i = 0; i < n; i++) {
		int length = 0;
		MPI_Info info;
		OK(nth_pset(s, MPI_INFO_NULL, i, &length, NULL));
		CHECK(length > 1 && length <= (int)sizeof name);
		OK(nth_pset(s, MPI_INFO_NULL, i, &length, name));
		CHECK((int)strlen(name) + 1 == length);
		OK(pset_info(s, name, &info));
		OK(MPI_Info_get(info, "mpi_size", sizeof value - 1, value, &flag));
		CHECK(flag);
		if (!strcmp(name, "mpi://WORLD"))
			CHECK(atoi(value) == 3 && ++found);
		if (!strcmp(name, "mpi://SELF"))
			CHECK(atoi(value) == 1 && ++found);
		OK(MPI_Info_free(&info));
	}
	CHECK(found == 2);
	n = 5;
	OK(nth_pset(s, MPI_INFO_NULL, 0, &n, name)); /* cut */
	CHECK(!strcmp(name, "mpi:") && n == sizeof "mpi://WORLD");
}

static void errors(MPI_Session s)
{
	MPI_Errhandler mine, is, of_comms;
	MPI_Group g;
	MPI_Comm c;
	int class;
	CHECK(MPI_Error_class(from_pset(s, "mpi://NOTHING", &g), &class) == MPI_SUCCESS && class == MPI_ERR_ARG);
	OK(create_errhandler(handler, &mine));
	OK(set_errhandler(s, mine));
	OK(get_errhandler(s, &is));
	CHECK(is == mine);
	OK(MPI_Errhandler_free(&is));
	OK(MPI_Errhandler_free(&mine));
	CHECK(from_pset(s, "mpi://NOTHING", &g) != MPI_SUCCESS && handled == MPI_ERR_ARG && handled_session == s);
	handled = 0;
	OK(call_errhandler(s, MPI_ERR_OTHER));
	CHECK(handled == MPI_ERR_OTHER);
	OK(from_pset(s, "mpi://SELF", &g)); /* errors of making a communicator are the session's */
	handled = 0;
	CHECK(create_from_group(g, "x", MPI_INFO_NULL, MPI_ERRHANDLER_NULL, &c) != MPI_SUCCESS && handled == MPI_ERR_ARG);
	OK(MPI_Group_free(&g));
	MPI_Comm_create_errhandler(on_comm, &of_comms);
	handled = 0;
	CHECK(set_errhandler(s, of_comms) != MPI_SUCCESS && handled == MPI_ERR_ARG);
	OK(MPI_Errhandler_free(&of_comms));
	OK(set_errhandler(s, MPI_ERRORS_RETURN));
}

/* buffers: a communicator without a buffer of its own takes that of its session. */
static void buffers(MPI_Session s)
{
	int (*attach)(MPI_Session, void *, int), (*detach)(MPI_Session, void *, int *), (*flush)(MPI_Session);
	char buffer[4 + MPI_BSEND_OVERHEAD], got[4];
	void *at;
	int n;
	MPI_Group g;
	MPI_Comm c, d;
	LOOK_UP(attach, "MPI_Session_attach_buffer");
	LOOK_UP(detach, "MPI_Session_detach_buffer");
	LOOK_UP(flush, "MPI_Session_flush_buffer");
	OK(from_pset(s, "mpi://SELF", &g));
	OK(create_from_group(g, "buffers", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
	OK(MPI_Group_free(&g));
	OK(MPI_Comm_dup(c, &d));
	CHECK(MPI_Bsend("abc", 4, MPI_CHAR, 0, 0, d) != MPI_SUCCESS);
	OK(attach(s, buffer, sizeof buffer));
	OK(MPI_Bsend("abc", 4, MPI_CHAR, 0, 0, d));
	OK(MPI_Recv(got, 4, MPI_CHAR, 0, 0, d, MPI_STATUS_IGNORE));
	CHECK(!strcmp(got, "abc"));
	OK(flush(s));
	OK(detach(s, &at, &n));
	CHECK(at == buffer && n == sizeof buffer);
	OK(MPI_Comm_free(&d));
	OK(MPI_Comm_free(&c));
}

/* with_init: MPI_Init and MPI_Finalize between sessions. The job is left with the last session. */
static void with_init(MPI_Session *one)
{
	MPI_Session two;
	int size, rank, class;
	OK(MPI_Init(NULL, NULL));
	OK(finalize(one));
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	OK(MPI_Barrier(MPI_COMM_WORLD));
	OK(MPI_Error_class(num_psets(*one, MPI_INFO_NULL, &size), &class));
	CHECK(class == MPI_ERR_SESSION);
	OK(init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &two));
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	OK(MPI_Finalize());
	CHECK(sum(two, "mpi://WORLD", "c", &size) == 3);
	if (rank == 0)
		printf("sessions: no errors\n");
	OK(finalize(&two));
	CHECK(init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &two) != MPI_SUCCESS);
}

int main(int argc, char **argv)
{
	MPI_Session one, two, none = MPI_SESSION_NULL;
	MPI_Info info;
	char level[64];
	int size, flag, rank;
	look_up();
	OK(init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &one));
	OK(MPI_Initialized(&flag));
	CHECK(!flag);
	OK(get_info(one, &info));
	OK(MPI_Info_get(info, "thread_level", sizeof level - 1, level, &flag));
	CHECK(flag && !strcmp(level, "MPI_THREAD_MULTIPLE"));
	OK(MPI_Info_free(&info));
	psets(one);
	errors(one);
	buffers(one);
	CHECK(f2c(c2f(one)) == one && f2c(c2f(none)) == none);

	CHECK(sum(one, "mpi://WORLD", "a", &size) == 3 && size == 3);
	OK(init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &two));
	CHECK(two != one);
	OK(finalize(&one));
	CHECK(one == none);
	CHECK(sum(two, "mpi://self", "b", &size) == 0 && size == 1); /* each on its own */
	CHECK(sum(two, "mpix://SHARED", "a", &size) == 3 && size == 3);
	OK(finalize(&two));

	OK(init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &one)); /* when none was open */
	CHECK(sum(one, "mpi://WORLD", "a", &size) == 3);
	if (argc > 1 && !strcmp(argv[1], "world"))
		return MPI_Barrier(MPI_COMM_WORLD); /* which is of MPI_Init */
	if (argc > 1 && !strcmp(argv[1], "open"))
		return 0;
	if (argc > 1 && !strcmp(argv[1], "init"))
		with_init(&one);
	else {
		MPI_Group g;
		MPI_Comm c; /* never freed */
		OK(from_pset(one, "mpi://WORLD", &g));
		OK(create_from_group(g, "last", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
		MPI_Comm_rank(c, &rank);
		if (rank == 0)
			printf("sessions: no errors\n");
		OK(finalize(&one));
	}
	return 0;
}
