/* The opening of the core, and what must work without it. */
#define _GNU_SOURCE
#include "short.h"
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct gompi_mpi_core gompi_core;
static enum { FRESH, RUNNING, OVER } state;
static pthread_t first_thread;

/* out_of_turn ends the process: there is no communicator yet, or none any more, whose error handler
 * could be called. */
static void out_of_turn(const char *name)
{
	fprintf(stderr, "gompi: %s was called %s\n", name, state == FRESH ? "before MPI_Init" : "after MPI_Finalize");
	fflush(NULL);
	_exit(1);
}

/* open_core finds libgompi-mpi.so one folder above this library. */
static void open_core(void)
{
	char path[PATH_MAX + 32];
	Dl_info self;
	void (*fill)(struct gompi_mpi_core *);
	char *slash;
	if (!dladdr((void *)open_core, &self) || !realpath(self.dli_fname, path) || !(slash = strrchr(path, '/'))) {
		fprintf(stderr, "gompi: cannot find the folder of libmpi.so\n");
		_exit(1);
	}
	strcpy(slash, "/../libgompi-mpi.so");
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!lib || !(*(void **)&fill = dlsym(lib, "gompi_mpi_core"))) {
		fprintf(stderr, "gompi: %s\n", dlerror());
		_exit(1);
	}
	fill(&gompi_core);
}

static void start_once(void)
{
	static struct gompi_face face;
	gompi_set_up_handles();
	gompi_fill_face(&face);
	open_core();
	gompi_core.use(&face);
}

static void start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, start_once);
}

int gompi_call(int function, gompi_word *arguments)
{
	if (__builtin_expect(state != RUNNING, 0))
		out_of_turn("a function of MPI");
	gompi_short_abandon();
	return gompi_ended(gompi_core.call(function, arguments));
}

int gompi_call_any_time(int function, gompi_word *arguments)
{
	start();
	return gompi_ended(gompi_core.call(function, arguments));
}

int gompi_null(int function, gompi_word comm, const char *name)
{
	start();
	return gompi_ended(gompi_core.null(function, (int32_t)comm, name));
}

int gompi_missing(const char *name)
{
	if (state == RUNNING)
		return gompi_ended(gompi_core.unsupported(name));
	fprintf(stderr, "gompi: %s is not implemented by gompi\n", name);
	fflush(NULL);
	_exit(1);
}

/* gompi_clear_stack clears what Go's callers have left on the stack. xdsyevr and xssyevr of ScaLAPACK's
 * testers make a communicator, and then compare a REAL that they have not set with itself. */
void gompi_clear_stack(void)
{
	char left[1 << 14];
	memset(left, 0, sizeof left);
	__asm__ volatile("" : : "r"(left) : "memory");
}

int gompi_length(int what, MPI_Comm comm)
{
	return state == RUNNING ? gompi_core.length(what, (int)IN_comm(comm)) : 0;
}

void *gompi_array(void *few, int room, size_t size, int n)
{
	void *p = n <= room ? few : malloc(n * size);
	if (!p) {
		fprintf(stderr, "gompi: no memory for %d handles\n", n);
		abort();
	}
	return p;
}

GOMPI_ALIAS(Init_thread)
int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	(void)argc, (void)argv, (void)required;
	if (state != FRESH)
		out_of_turn("MPI_Init");
	start();
	first_thread = pthread_self();
	if (gompi_core.init())
		_exit(1); /* the core has said why */
	state = RUNNING;
	gompi_lease = gompi_core.lease();
	gompi_set_up_languages();
	*provided = MPI_THREAD_MULTIPLE;
	return MPI_SUCCESS;
}

GOMPI_ALIAS(Init)
int PMPI_Init(int *argc, char ***argv)
{
	int provided;
	return PMPI_Init_thread(argc, argv, MPI_THREAD_SINGLE, &provided);
}

GOMPI_ALIAS(Finalize)
int PMPI_Finalize(void)
{
	if (state != RUNNING)
		out_of_turn("MPI_Finalize");
	gompi_lease = NULL;
	int error = gompi_core.finalize();
	state = OVER;
	return gompi_ended(error);
}

#define ANSWER(name, value) GOMPI_ALIAS(name) int PMPI_##name(int *answer) { *answer = (value); return MPI_SUCCESS; }
ANSWER(Initialized, state != FRESH)
ANSWER(Finalized, state == OVER)
ANSWER(Query_thread, MPI_THREAD_MULTIPLE)
ANSWER(Is_thread_main, pthread_equal(pthread_self(), first_thread) != 0)

GOMPI_ALIAS(Get_version)
int PMPI_Get_version(int *version, int *subversion)
{
	*version = MPI_VERSION;
	*subversion = MPI_SUBVERSION;
	return MPI_SUCCESS;
}

GOMPI_ALIAS(Get_library_version)
int PMPI_Get_library_version(char *version, int *length)
{
	*length = snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING, "gompi %s, as %s", GOMPI_VERSION, GOMPI_FACE);
	return MPI_SUCCESS;
}

GOMPI_ALIAS(Wtime)
double PMPI_Wtime(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

GOMPI_ALIAS(Wtick)
double PMPI_Wtick(void) { return 1e-9; }

GOMPI_ALIAS(Pcontrol)
int PMPI_Pcontrol(const int level, ...) { return (void)level, MPI_SUCCESS; }

#undef MPI_Aint_add
#undef MPI_Aint_diff
#undef PMPI_Aint_add
#undef PMPI_Aint_diff
GOMPI_ALIAS(Aint_add)
MPI_Aint PMPI_Aint_add(MPI_Aint base, MPI_Aint disp) { return base + disp; }

GOMPI_ALIAS(Aint_diff)
MPI_Aint PMPI_Aint_diff(MPI_Aint addr1, MPI_Aint addr2) { return addr1 - addr2; }
