/* The opening of the core, and what must work without it. */
#define _GNU_SOURCE
#include "short.h"
#include "../../../internal/guest/shim/room.h"
#include "../../../internal/guest/shim/signals.h"
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct gompi_mpi_core gompi_core;
static enum { FRESH, RUNNING, OVER } state; /* of MPI_Init and MPI_Finalize */
static int running; /* between these two, and while a session is open */
static int ran;     /* it was once */
static pthread_t first_thread;

/* gompi_end ends the process: there is no communicator, yet or any more, whose error handler could be called. */
void gompi_end(const char *why, ...)
{
	va_list args;
	va_start(args, why);
	vfprintf(stderr, why, args);
	fflush(NULL);
	_exit(1);
}

/* fill_core has the core in lib, whose path is given, fill gompi_core. That of another build refuses: it may have
 * other functions under the same numbers, and other memory where this face looks. */
static void fill_core(void *lib, const char *path, const char *face)
{
	uint64_t (*fill)(struct gompi_mpi_core *, uint64_t);
	*(void **)&fill = dlsym(lib, "gompi_mpi_fill");
	if (fill && fill(&gompi_core, GOMPI_SHARED_NUMBER) == GOMPI_SHARED_NUMBER)
		return;
	char real[PATH_MAX];
	gompi_end("gompi: %s and %s are of different builds of gompi: install both of one build, or type make libmpi\n", face,
	          realpath(path, real) ? real : path);
}

/* open_core finds libgompi-mpi.so one folder above this library. */
static void open_core(void)
{
	char face[PATH_MAX], path[PATH_MAX + 32];
	Dl_info self;
	char *slash;
	if (!dladdr((void *)open_core, &self) || !realpath(self.dli_fname, face) || !(slash = strrchr(face, '/')))
		gompi_end("gompi: cannot find the folder of libmpi.so\n");
	snprintf(path, sizeof path, "%.*s/../libgompi-mpi.so", (int)(slash - face), face);
	char room[200];
	if (gompi_no_room(room, sizeof room))
		gompi_end("gompi: MPI_Init: %s\n", room);
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!lib)
		gompi_end("gompi: %s\n", dlerror());
	fill_core(lib, path, face);
}

static void start_once(void)
{
	static struct gompi_face face;
	gompi_set_up_handles();
	gompi_fill_face(&face);
	gompi_signals();
	open_core();
	gompi_core.use(&face);
}

/* gompi_start opens the core, and makes handles known. */
void gompi_start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, start_once);
}

/* leave_at_end leaves the job if all is well: a program that fails has its status reported. */
static void leave_at_end(int status, void *unused)
{
	(void)unused;
	if (status == 0)
		gompi_core.exit();
}

/* gompi_turn is called when MPI or a session has begun or ended. */
void gompi_turn(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct gompi_lease *lease;
	pthread_mutex_lock(&lock);
	running = gompi_core.running();
	if (running && !ran) {
		ran = 1;
		lease = gompi_core.lease();
		gompi_count_from_now();
		gompi_set_up_languages();
		on_exit(leave_at_end, NULL);
	}
	gompi_lease = running ? lease : NULL;
	pthread_mutex_unlock(&lock);
}

/* Where each thread has entered Go: a debugger that finds it there goes on from here, since a stack of Go's is between
 * (frames.py and the walker of mpirun/internal/proc). A thread of more than these shares another's place. */
enum { ENTRIES = 256 };
struct gompi_entry {
	int64_t thread;
	void *frame;
} gompi_entries[ENTRIES];

static struct gompi_entry *own_entry(void)
{
	static __thread struct gompi_entry *own __attribute__((tls_model("initial-exec")));
	static uint32_t used;
	if (__builtin_expect(!own, 0)) {
		own = &gompi_entries[__atomic_fetch_add(&used, 1, __ATOMIC_RELAXED) % ENTRIES];
		own->thread = syscall(SYS_gettid);
	}
	return own;
}

/* IN_GO does what enters Go, and notes from where: this function keeps its frame pointer. */
#define IN_GO(what) \
	do { \
		struct gompi_entry *entry = own_entry(); \
		void *outer = entry->frame; /* of a call in which Go has called the program */ \
		entry->frame = __builtin_frame_address(0); \
		what; \
		entry->frame = outer; \
	} while (0)

__attribute__((noinline)) int gompi_call(int function, gompi_word *arguments)
{
	int error;
	if (__builtin_expect(!running, 0))
		gompi_end("gompi: a function of MPI was called %s\n",
		          state == OVER ? "after MPI_Finalize" : ran ? "when no session was open" : "before MPI_Init");
	gompi_short_abandon();
	IN_GO(error = gompi_core.call(function, arguments));
	return gompi_ended(error);
}

int gompi_call_any_time(int function, gompi_word *arguments)
{
	if (running)
		return gompi_call(function, arguments);
	return gompi_ended(gompi_core.call(function, arguments));
}

int gompi_null(int function, gompi_word object, const char *name)
{
	gompi_start();
	return gompi_ended(gompi_core.null(function, (int32_t)object, name));
}

int gompi_missing(const char *name) { return gompi_missing_on(name, GOMPI_BAD); }

int gompi_missing_on(const char *name, gompi_word comm)
{
	if (running)
		return gompi_ended(gompi_core.unsupported((int32_t)comm, name));
	gompi_end("gompi: %s is not implemented by gompi\n", name);
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
	return running ? gompi_core.length(what, (int)IN_comm(comm)) : 0;
}

void *gompi_array(void *few, int room, size_t size, int n)
{
	void *p = n <= room ? few : malloc(n * size);
	if (!p)
		gompi_end("gompi: no memory for %d handles\n", n);
	return p;
}

GOMPI_ALIAS(Init_thread)
int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	(void)argc, (void)argv, (void)required;
	if (state != FRESH)
		gompi_end("gompi: MPI_Init was called a second time\n");
	gompi_start();
	first_thread = pthread_self();
	if (gompi_core.init())
		_exit(1); /* the core has said why */
	state = RUNNING;
	gompi_turn();
	gompi_made_comm(MPI_COMM_WORLD);
	gompi_made_comm(MPI_COMM_SELF);
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
		gompi_end("gompi: MPI_Finalize was called %s\n", state == FRESH ? "before MPI_Init" : "a second time");
	COUNTED("MPI_Finalize");
	gompi_lease = NULL;
	int error;
	IN_GO(error = gompi_core.finalize());
	state = OVER;
	gompi_turn();
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

GOMPI_ALIAS(Abi_get_version)
int PMPI_Abi_get_version(int *major, int *minor)
{
#ifdef GOMPI_STANDARD
	return *major = MPI_ABI_VERSION, *minor = MPI_ABI_SUBVERSION, MPI_SUCCESS;
#else
	return *major = *minor = -1, MPI_SUCCESS;
#endif
}

GOMPI_ALIAS(Get_library_version)
int PMPI_Get_library_version(char *version, int *length)
{
	*length = snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING, "gompi %s, as %s", GOMPI_VERSION, GOMPI_FACE);
	return MPI_SUCCESS;
}

/* What both MPIs are asked about buffers in memory of devices, also before MPI_Init: there are none. */
#define NO_DEVICES(name, params) \
	_Pragma(GOMPI_STRING(weak MPIX_##name = PMPIX_##name)) \
	int PMPIX_##name params
NO_DEVICES(Query_cuda_support, (void)) { return 0; }
NO_DEVICES(Query_rocm_support, (void)) { return 0; }
NO_DEVICES(Query_hip_support, (void)) { return 0; }
NO_DEVICES(Query_ze_support, (void)) { return 0; }
NO_DEVICES(GPU_query_support, (int kind, int *answer)) { return (void)kind, *answer = 0, MPI_SUCCESS; }

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
