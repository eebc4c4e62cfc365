/* What functions of the program are given, and where they run: with the argument "single", the program has one thread. */
#include <mpi.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(x) do { if (!(x)) { fprintf(stderr, "functions.c, line %d: %s\n", __LINE__, #x); MPI_Abort(MPI_COMM_WORLD, 1); } } while (0)

static int rank, size;
static int cells = 1;             /* of the datatype that operators get */
static volatile int computing;    /* the program is in no call */
static int calls;                 /* of operators */
static __thread int here;         /* those on this thread */
static MPI_Op adds;

/* add adds elements of several ints, of which it asks MPI how many. */
static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
	int bytes = -1;
	CHECK(!computing);
	here++;
	__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
	CHECK(MPI_Type_size(*type, &bytes) == MPI_SUCCESS && bytes == cells * (int)sizeof(int));
	for (int i = 0; i < *n * cells; i++)
		((int *)inout)[i] += ((int *)in)[i];
}

static MPI_Datatype ints(int n)
{
	MPI_Datatype t;
	MPI_Type_contiguous(n, MPI_INT, &t);
	MPI_Type_commit(&t);
	return t;
}

/* freed frees the datatype, the operator and the communicator of reductions that are under way, or that are started
 * later, and takes new ones of other sizes. */
static void freed(int persistent)
{
	enum { N = 500, TYPES = 20 };
	static int a[3 * N], b[3 * N];
	MPI_Datatype t, others[TYPES];
	MPI_Request r;
	MPI_Comm c;
	MPI_Op op;
	cells = 3;
	t = ints(cells);
	MPI_Op_create(add, 1, &op);
	MPI_Comm_dup(MPI_COMM_WORLD, &c);
	for (int i = 0; i < 3 * N; i++)
		a[i] = rank + i;
	if (rank == 0 && !persistent)
		MPI_Barrier(MPI_COMM_WORLD); /* the others have freed them */
	if (!persistent)
		MPI_Iallreduce(a, b, N, t, op, c, &r);
#if MPI_VERSION >= 4
	else
		MPI_Allreduce_init(a, b, N, t, op, c, MPI_INFO_NULL, &r);
#endif
	MPI_Type_free(&t);
	MPI_Op_free(&op);
	MPI_Comm_free(&c);
	for (int i = 0; i < TYPES; i++)
		others[i] = ints(7 + i);
	if (rank != 0 && !persistent)
		MPI_Barrier(MPI_COMM_WORLD);
	for (int times = persistent ? 3 : 1; times-- > 0;) {
		if (persistent) {
			memset(b, 0, sizeof b);
			MPI_Start(&r);
		}
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		for (int i = 0; i < 3 * N; i++)
			CHECK(b[i] == size * (size - 1) / 2 + size * i);
	}
	if (persistent)
		MPI_Request_free(&r);
	for (int i = 0; i < TYPES; i++)
		MPI_Type_free(&others[i]);
}

static pthread_t first; /* of the program */
static int ran;

/* runs is called by each function that is no operator. */
static void runs(void)
{
	CHECK(!computing && pthread_equal(pthread_self(), first));
	ran++;
}

/* handler is that of a communicator which is freed before a receive on it fails. */
static int handled;
static void handler(MPI_Comm *c, int *code, ...)
{
	char name[MPI_MAX_OBJECT_NAME];
	int n, class;
	handled++;
	runs();
	MPI_Error_class(*code, &class);
	CHECK(MPI_Comm_get_name(*c, name, &n) == MPI_SUCCESS && !strcmp(name, "freed") && class == MPI_ERR_TRUNCATE);
}

static int copies(MPI_Comm c, int key, void *extra, void *value, void *copy, int *flag)
{
	runs();
	*(void **)copy = value;
	*flag = 1;
	return MPI_SUCCESS;
}
static int deletes(MPI_Comm c, int key, void *value, void *extra) { return runs(), MPI_SUCCESS; }
static int query(void *extra, MPI_Status *status)
{
	runs();
	MPI_Status_set_elements(status, MPI_INT, 0);
	MPI_Status_set_cancelled(status, 0);
	return MPI_SUCCESS;
}
static int release(void *extra) { return runs(), MPI_SUCCESS; }
static int cancel(void *extra, int complete) { return runs(), MPI_SUCCESS; }

/* attached has functions of attributes and of a generalized request run. */
static void attached(void)
{
	MPI_Request r;
	MPI_Comm a, b;
	int key, before = ran;
	MPI_Comm_create_keyval(copies, deletes, &key, NULL);
	MPI_Comm_dup(MPI_COMM_WORLD, &a);
	MPI_Comm_set_attr(a, key, &key);
	MPI_Comm_idup(a, &b, &r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	MPI_Ibarrier(b, &r);
	MPI_Comm_free(&b);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	MPI_Comm_free(&a);
	MPI_Comm_free_keyval(&key);
	CHECK(ran == before + 3); /* copied once, deleted twice */
	MPI_Grequest_start(query, release, cancel, NULL, &r);
	MPI_Cancel(&r);
	MPI_Grequest_complete(r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	CHECK(ran == before + 6);
}

static void named(MPI_Comm *c, const char *name)
{
	MPI_Comm_dup(MPI_COMM_WORLD, c);
	MPI_Comm_set_name(*c, name);
}

static void failing(void)
{
	MPI_Errhandler h;
	MPI_Request r;
	MPI_Comm c, later[4];
	int numbers[2];
	named(&c, "freed");
	MPI_Comm_create_errhandler(handler, &h);
	MPI_Comm_set_errhandler(c, h);
	MPI_Errhandler_free(&h);
	MPI_Irecv(numbers, 1, MPI_INT, (rank + size - 1) % size, 0, c, &r);
	MPI_Send(numbers, 2, MPI_INT, (rank + 1) % size, 0, c);
	MPI_Comm_free(&c);
	for (int i = 0; i < 4; i++)
		named(&later[i], "another");
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	CHECK(handled == 1);
	for (int i = 0; i < 4; i++)
		MPI_Comm_free(&later[i]);
}

/* pending has rank 0 wait on a communicator that it has freed: it gets no message of the next one. */
static void pending(void)
{
	int one = 1, two = 2, got = -1, other = -1, flag = 0;
	MPI_Request r;
	MPI_Comm a, b;
	MPI_Comm_dup(MPI_COMM_WORLD, &a);
	for (int i = 0; i < 20; i++) /* which is for short messages */
		if (rank == 0)
			MPI_Recv(&other, 1, MPI_INT, 1, 1, a, MPI_STATUS_IGNORE);
		else if (rank == 1)
			MPI_Send(&one, 1, MPI_INT, 0, 1, a);
	if (rank == 0) {
		MPI_Irecv(&got, 1, MPI_INT, 1, 5, a, &r);
		MPI_Comm_free(&a);
	}
	MPI_Comm_dup(MPI_COMM_WORLD, &b);
	for (int i = 0; i < 200 && rank == 0; i++)
		MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		MPI_Recv(&other, 1, MPI_INT, 1, 5, b, MPI_STATUS_IGNORE);
		CHECK(!flag && got == -1 && other == two);
	} else if (rank == 1) {
		MPI_Send(&two, 1, MPI_INT, 0, 5, b);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		CHECK(got == one);
	} else {
		if (rank == 1)
			MPI_Send(&one, 1, MPI_INT, 0, 5, a);
		MPI_Comm_free(&a);
	}
	MPI_Comm_free(&b);
}

/* kept starts persistent requests of messages on a communicator that is freed while they are inactive or, with active,
 * under way, and receives a message that was matched on it. */
static void kept(int active)
{
	int left = (rank + size - 1) % size, right = (rank + 1) % size, sent = rank, got = -1, matched = rank, other = -1;
	MPI_Request r[2], s;
	MPI_Message m;
	MPI_Comm c, next[3];
	MPI_Comm_dup(MPI_COMM_WORLD, &c);
	MPI_Recv_init(&got, 1, MPI_INT, left, 1, c, &r[0]);
	MPI_Send_init(&sent, 1, MPI_INT, right, 1, c, &r[1]);
	MPI_Isend(&matched, 1, MPI_INT, right, 2, c, &s);
	MPI_Mprobe(left, 2, c, &m, MPI_STATUS_IGNORE);
	if (active)
		MPI_Startall(2, r);
	MPI_Comm_free(&c);
	for (int i = 0; i < 3; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &next[i]);
		MPI_Barrier(next[i]); /* the others have freed theirs */
	}
	for (int i = 0; i < 3; i++) {
		if (!active || i > 0) {
			got = -1;
			sent = rank + i * size;
			MPI_Startall(2, r);
		}
		MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
		CHECK(got == left + i * size);
	}
	MPI_Request_free(&r[0]);
	MPI_Request_free(&r[1]);
	MPI_Mrecv(&other, 1, MPI_INT, &m, MPI_STATUS_IGNORE);
	CHECK(other == left);
	MPI_Wait(&s, MPI_STATUS_IGNORE);
	for (int i = 0; i < 3; i++)
		MPI_Comm_free(&next[i]);
}

/* What rank 0 waits for while a reduction is under way, which the others wait for before they let it end: the rank calls
 * the reduction's operator meanwhile. On rank 0 each begins, on the others it ends. */

static MPI_Comm beside, across; /* across is one of rank 0 and the others */
static MPI_Win win;
static int *memory; /* of the window */
static int word;

static void others(void (*f)(int))
{
	for (int r = 1; r < size; r++)
		f(r);
}

static void receive(int r) { MPI_Recv(&word, 1, MPI_INT, r, 1, beside, MPI_STATUS_IGNORE); }
static void tell(void) { MPI_Send(&rank, 1, MPI_INT, 0, 1, beside); }

static void recv(void) { rank ? tell() : others(receive); }

static void send_to(int r) { MPI_Ssend(&r, 1, MPI_INT, r, 1, beside); }
static void ssend(void)
{
	rank ? (void)MPI_Recv(&word, 1, MPI_INT, 0, 1, beside, MPI_STATUS_IGNORE) : others(send_to);
}

static void probe(void)
{
	if (!rank)
		MPI_Probe(1, 1, beside, MPI_STATUS_IGNORE);
	recv();
}

static void iprobe(void)
{
	for (int flag = rank; !flag;)
		MPI_Iprobe(1, 1, beside, &flag, MPI_STATUS_IGNORE);
	recv();
}

static void messages(void (*complete)(int, MPI_Request *))
{
	MPI_Request rs[64];
	static int got[64];
	if (rank) {
		tell();
		return;
	}
	for (int r = 1; r < size; r++)
		MPI_Irecv(&got[r], 1, MPI_INT, r, 1, beside, &rs[r - 1]);
	complete(size - 1, rs);
}

static void wait_all(int n, MPI_Request *rs) { MPI_Waitall(n, rs, MPI_STATUSES_IGNORE); }
static void wait_any(int n, MPI_Request *rs)
{
	for (int i = 0, which; i < n; i++)
		MPI_Waitany(n, rs, &which, MPI_STATUS_IGNORE);
}
static void test_all(int n, MPI_Request *rs)
{
	for (int flag = 0; !flag;)
		MPI_Testall(n, rs, &flag, MPI_STATUSES_IGNORE);
}
static void get_status(int n, MPI_Request *rs)
{
	for (int flag = 0; !flag;)
		MPI_Request_get_status(rs[0], &flag, MPI_STATUS_IGNORE);
	MPI_Waitall(n, rs, MPI_STATUSES_IGNORE);
}
static void waitall(void) { messages(wait_all); }
static void waitany(void) { messages(wait_any); }
static void testall(void) { messages(test_all); }
static void getstatus(void) { messages(get_status); }

static void barrier(void) { MPI_Barrier(beside); }

static void reduce(void)
{
	int sum;
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, adds, beside);
	CHECK(sum == size * (size - 1) / 2);
}

static void dup(void)
{
	MPI_Comm c;
	MPI_Comm_dup(beside, &c);
	MPI_Comm_free(&c);
}

/* between has a reduction between two groups, too, which runs behind another of them that is nonblocking. */
static void between(void)
{
	MPI_Request r;
	int one = rank, sum = -1, again = -1, want = rank ? 0 : size * (size - 1) / 2;
	MPI_Iallreduce(&one, &sum, 1, MPI_INT, adds, across, &r);
	MPI_Allreduce(&one, &again, 1, MPI_INT, adds, across);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	CHECK(sum == want && again == want);
}

static void fence(void)
{
	MPI_Win_fence(0, win);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
}

/* locked is entered by the others with the part of rank 0 locked. */
static void locked(void)
{
	if (rank) {
		MPI_Win_unlock(0, win);
	} else {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
		MPI_Win_unlock(0, win);
	}
}

/* synced has rank 0 wait for what rank 1 stores. */
static void synced(void)
{
	int one = 1;
	MPI_Win_lock_all(0, win);
	if (rank == 1) {
		MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win);
		MPI_Win_flush(0, win);
	}
	while (!rank && !__atomic_load_n(memory, __ATOMIC_ACQUIRE))
		MPI_Win_sync(win);
	MPI_Win_unlock_all(win);
}

static const struct {
	const char *name;
	void (*wait)(void);
} waits[] = {
	{"MPI_Recv", recv}, {"MPI_Ssend", ssend}, {"MPI_Probe", probe}, {"MPI_Iprobe", iprobe}, {"MPI_Waitall", waitall},
	{"MPI_Waitany", waitany}, {"MPI_Testall", testall}, {"MPI_Request_get_status", getstatus}, {"MPI_Barrier", barrier},
	{"MPI_Allreduce", reduce}, {"MPI_Comm_dup", dup}, {"MPI_Allreduce of an intercommunicator", between},
	{"MPI_Win_fence", fence}, {"MPI_Win_lock", locked}, {"MPI_Win_sync", synced},
};

enum { LONG = 1 << 17 }; /* so many elements are combined in shares: each rank needs those of all others */
static int *from, *sums;

static void start(MPI_Request *r)
{
	for (int i = 0; i < LONG; i++)
		from[i] = rank + i, sums[i] = -1;
	MPI_Iallreduce(from, sums, LONG, MPI_INT, adds, MPI_COMM_WORLD, r);
}

static void finish(MPI_Request *r)
{
	MPI_Wait(r, MPI_STATUS_IGNORE);
	for (int i = 0; i < LONG; i++)
		CHECK(sums[i] == size * (size - 1) / 2 + size * i);
}

static void compute(void)
{
	volatile double x = 0;
	computing = 1;
	for (int i = 0; i < 300000; i++)
		x += i;
	computing = 0;
}

static void waiting(void)
{
	for (unsigned i = 0; i < sizeof waits / sizeof *waits; i++) {
		MPI_Request r;
		memory[0] = 0;
		if (rank && waits[i].wait == locked)
			MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
		MPI_Barrier(MPI_COMM_WORLD);
		start(&r);
		compute();
		if (rank)
			finish(&r);
		waits[i].wait();
		if (!rank)
			finish(&r);
		if (here != calls)
			fprintf(stderr, "%s: %d of %d calls of the operator on the program's thread\n", waits[i].name, here, calls);
		CHECK(here == calls);
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

/* What one thread has started others in a call go on with. */

static sem_t started, ended;

static void *starts(void *r)
{
	start(r);
	sem_post(&started);
	sem_wait(&ended);
	finish(r);
	return NULL;
}

static void threads(void)
{
	pthread_t t;
	MPI_Request r;
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank) {
		start(&r);
		finish(&r);
		tell();
		return;
	}
	sem_init(&started, 0, 0);
	sem_init(&ended, 0, 0);
	pthread_create(&t, NULL, starts, &r);
	sem_wait(&started);
	others(receive);
	sem_post(&ended);
	pthread_join(t, NULL);
}

int main(int argc, char **argv)
{
	int provided, single = argc > 1 && !strcmp(argv[1], "single");
	MPI_Comm half;
	first = pthread_self();
	if (single)
		MPI_Init(&argc, &argv);
	else
		MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Op_create(add, 1, &adds);
	for (int i = 0; i < 20; i++)
		freed(0);
	if (MPI_VERSION >= 4)
		freed(1);
	failing();
	attached();
	for (int i = 0; i < 20; i++)
		kept(i % 2);
	for (int i = 0; i < 50 && size > 1; i++)
		pending();
	cells = 1;
	from = malloc(LONG * sizeof(int));
	sums = malloc(LONG * sizeof(int));
	MPI_Comm_dup(MPI_COMM_WORLD, &beside);
	if (size > 1) {
		MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &half);
		MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank > 0 ? 0 : 1, 7, &across);
		MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
		waiting();
		if (!single)
			threads();
		MPI_Win_free(&win);
		MPI_Comm_free(&across);
		MPI_Comm_free(&half);
	}
	MPI_Comm_free(&beside);
	MPI_Op_free(&adds);
	free(from);
	free(sums);
	if (rank == 0)
		printf("functions: no errors\n");
	MPI_Finalize();
	return 0;
}
