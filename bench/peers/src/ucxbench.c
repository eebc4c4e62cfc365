/* ucxbench is gompi-bench for UCX itself: two processes that it starts, bound to
 * a processor each, exchange active messages of UCP as gompi's transport over UCX
 * does: a header of 48 bytes, error mode PEER, the wakeup feature, registered
 * memory. Flags, rule of timing (rule.h) and CSV are those of gompi-bench.
 *
 *     gcc -O2 -o ucxbench ucxbench.c -lucp -lucs
 *     UCX_TLS=tcp UCX_NET_DEVICES=lo ./ucxbench -np 2 -sizes 8,1M latency bw */
#define _GNU_SOURCE
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include "rule.h"

/* The kinds of messages: of a timed call, and of agree. */
enum { DATA, TELL, KINDS };

/* A head is what a message begins with. */
struct head {
	i64 kind, value;
	char rest[32];
};

/* A vector is memory that UCX has registered. */
struct vector {
	char *bytes;
	ucp_mem_h memory;
};

/* A cell is an operation at one size. */
struct cell {
	const struct op *op;
	long bytes;
	int window;
};

struct op {
	const char *name;
	void (*run)(struct cell *);
	int both; /* ranks send data */
};

static int rank = -1; /* until there are ranks */
static int fd;        /* of the connection between the ranks by which they meet */
static int crowded;   /* there is no processor for each */
static int leaving;
static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h endpoint;
static struct vector sent, received;
static struct head heads[KINDS]; /* of messages on their way */
static long pending;             /* sends that UCX has not ended */
static long here[KINDS], used[KINDS]; /* messages that have arrived, and been waited for */
static i64 told[2]; /* by the last messages of agree: the other rank may be one ahead */

static void fail(const char *what, const char *value) {
	fprintf(stderr, "ucxbench: %s \"%s\"\n", what, value);
	exit(2);
}

static void must(const char *what, ucs_status_t status) {
	if (status < 0)
		fail(what, ucs_status_string(status));
}

/* ---- messages ---- */

static void on_fetched(void *request, ucs_status_t status, size_t bytes, void *arg) {
	(void)bytes, (void)arg;
	must("UCX did not store a message:", status);
	ucp_request_free(request);
	here[DATA]++;
}

/* fetch has UCX store the data of a rendezvous. */
static void fetch(void *data, size_t bytes) {
	ucp_request_param_t p = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_MEMH,
		.cb.recv_am = on_fetched, .memh = received.memory,
	};
	ucs_status_ptr_t r = ucp_am_recv_data_nbx(worker, data, received.bytes, bytes, &p);
	must("UCX does not store a message:", UCS_PTR_STATUS(r));
	here[DATA] += r == NULL;
}

static ucs_status_t on_message(void *arg, const void *header, size_t header_bytes,
                               void *data, size_t bytes, const ucp_am_recv_param_t *how) {
	(void)arg, (void)header_bytes;
	struct head h;
	memcpy(&h, header, sizeof h);
	if (how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
		fetch(data, bytes);
		return UCS_INPROGRESS;
	}
	memcpy(received.bytes, data, bytes);
	if (h.kind == TELL)
		told[here[TELL] % 2] = h.value;
	here[h.kind]++;
	return UCS_OK;
}

static void on_sent(void *request, ucs_status_t status, void *arg) {
	(void)arg;
	must("UCX did not send a message:", status);
	ucp_request_free(request);
	pending--;
}

static void on_failure(void *arg, ucp_ep_h ep, ucs_status_t status) {
	(void)arg, (void)ep;
	if (!leaving)
		must("UCX lost the other rank:", status);
}

static void post(int kind, long bytes) {
	ucp_request_param_t p = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | (bytes ? UCP_OP_ATTR_FIELD_MEMH : 0),
		.cb.send = on_sent, .memh = sent.memory,
	};
	struct head *h = &heads[kind];
	h->kind = kind;
	ucs_status_ptr_t r = ucp_am_send_nbx(endpoint, 0, h, sizeof *h, sent.bytes, bytes, &p);
	must("UCX does not send a message:", UCS_PTR_STATUS(r));
	pending += r != NULL;
}

static void progress(void) {
	if (!ucp_worker_progress(worker) && crowded)
		sched_yield();
}

static void settle(void) {
	while (pending)
		progress();
}

static void await(int kind, int messages) {
	used[kind] += messages;
	while (here[kind] < used[kind])
		progress();
}

static i64 agree(i64 x) {
	heads[TELL].value = x;
	post(TELL, 0);
	settle();
	await(TELL, 1);
	i64 other = told[(used[TELL] - 1) % 2];
	return x > other ? x : other;
}

/* ---- operations ---- */

static void run_latency(struct cell *k) {
	if (rank == 1)
		await(DATA, 1);
	post(DATA, k->bytes);
	settle();
	if (rank == 0)
		await(DATA, 1);
}

static void run_bw(struct cell *k) {
	if (rank == 1)
		await(DATA, k->window);
	for (int i = 0; i < (rank == 0 ? k->window : 1); i++)
		post(DATA, rank == 0 ? k->bytes : 0);
	settle();
	if (rank == 0)
		await(DATA, 1);
}

static const struct op ops[] = {{"latency", run_latency, 1}, {"bw", run_bw, 0}};
enum { OPS = sizeof ops / sizeof *ops };

static const struct op *find(const char *name) {
	for (int i = 0; i < OPS; i++)
		if (!strcmp(ops[i].name, name))
			return &ops[i];
	fail("want latency or bw, not", name);
	return NULL;
}

/* ---- measuring ---- */

static i64 iteration(struct cell *k) {
	agree(0);
	double start = now();
	k->op->run(k);
	return (i64)(now() - start);
}

/* pattern is byte i of what a rank sends. */
static char pattern(int from, long i) { return i % PERIOD * 31 + from; }

static void prepare(const struct cell *k) {
	for (long i = 0; i < k->bytes; i++)
		sent.bytes[i] = pattern(rank, i);
	memset(received.bytes, 0xa5, k->bytes);
	agree(0);
}

static void check(struct cell *k) {
	int wrong = 0;
	k->op->run(k);
	for (long i = 0; i < k->bytes && (rank == 1 || k->op->both); i++)
		wrong |= received.bytes[i] != pattern(1 - rank, i);
	if (wrong)
		fprintf(stderr, "ucxbench: %s of %ld bytes: rank %d received wrong data\n",
		        k->op->name, k->bytes, rank);
	if (agree(wrong))
		exit(1);
}

/* measure prints what rank 0's clock says. */
static void measure(struct cell *k, i64 *times) {
	prepare(k);
	check(k);
	int n = sample(k, k->bytes, times);
	agree(0);
	double start = now();
	for (int i = 0; i < n; i++)
		k->op->run(k);
	double b2b = now() - start;
	double messages = k->op->both ? 2 : k->window;
	struct row r = {k->op->name, "", 2, k->bytes, messages, b2b, 1, 1};
	if (rank == 0)
		print_row(r, times, n);
}

/* ---- the two ranks ---- */

/* launch starts the ranks, in which it returns, and ends with them: if one fails,
 * with both. */
static void launch(void) {
	int fds[2], status, failed = 0;
	pid_t pids[2];
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		fail("no socket for", "the ranks");
	for (int i = 0; i < 2; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			fail("no process for", "a rank");
		if (pids[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			close(fds[1 - i]);
			rank = i, fd = fds[i];
			return;
		}
	}
	close(fds[0]), close(fds[1]);
	for (pid_t pid; (pid = wait(&status)) > 0;) {
		if (status && !failed++)
			kill(pids[pid == pids[0]], SIGKILL);
	}
	exit(failed > 0);
}

/* bind_rank binds this rank to a processor of its own, if there are two. */
static void bind_rank(void) {
	cpu_set_t all, one;
	int cpu = -1;
	if (sched_getaffinity(0, sizeof all, &all) || CPU_COUNT(&all) < 2) {
		crowded = 1;
		return;
	}
	for (int i = 0; i <= rank; i++)
		while (!CPU_ISSET(++cpu, &all))
			;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof one, &one);
}

static void open_worker(void) {
	ucp_params_t p = {
		.field_mask = UCP_PARAM_FIELD_FEATURES,
		.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
	};
	ucp_worker_params_t wp = {
		.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
		.thread_mode = UCS_THREAD_MODE_SINGLE,
	};
	ucp_am_handler_param_t hp = {
		.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB,
		.id = 0, .cb = on_message,
	};
	must("UCX does not start:", ucp_init(&p, NULL, &context));
	must("UCX gives no worker:", ucp_worker_create(context, &wp, &worker));
	must("UCX takes no handler:", ucp_worker_set_am_recv_handler(worker, &hp));
}

/* connect_ranks has the ranks exchange their addresses. */
static void connect_ranks(void) {
	ucp_address_t *mine;
	size_t n;
	must("UCX has no address:", ucp_worker_get_address(worker, &mine, &n));
	char *other = malloc(n); /* as long as ours, on one machine */
	if (write(fd, mine, n) != (ssize_t)n || recv(fd, other, n, MSG_WAITALL) != (ssize_t)n)
		fail("no address from", "the other rank");
	ucp_ep_params_t p = {
		.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
		              UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER,
		.address = (ucp_address_t *)other,
		.err_mode = UCP_ERR_HANDLING_MODE_PEER, .err_handler.cb = on_failure,
	};
	must("UCX does not connect:", ucp_ep_create(worker, &p, &endpoint));
	ucp_worker_release_address(worker, mine);
	free(other);
}

static struct vector new_vector(long bytes) {
	struct vector v = {.bytes = page_aligned(bytes)};
	ucp_mem_map_params_t p = {
		.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
		.address = v.bytes, .length = bytes ? bytes : 1,
	};
	must("UCX does not register memory:", ucp_mem_map(context, &p, &v.memory));
	return v;
}

/* leave ends the connection when both ranks have all that was sent. Without it
 * UCX's files would remain in /dev/shm. */
static void leave(void) {
	ucp_request_param_t p = {0};
	leaving = 1;
	agree(0);
	ucs_status_ptr_t r = ucp_ep_close_nbx(endpoint, &p);
	if (UCS_PTR_IS_PTR(r)) {
		while (ucp_request_check_status(r) == UCS_INPROGRESS)
			progress();
		ucp_request_free(r);
	}
	ucp_mem_unmap(context, sent.memory), ucp_mem_unmap(context, received.memory);
	ucp_worker_destroy(worker);
	ucp_cleanup(context);
}

/* ---- the command line ---- */

static const char *list = "8,64,1K,16K,64K,256K,1M,4M";

/* parse reads the flags, of which gompi-bench compare gives some to all its peers. */
static void parse(int argc, char **argv) {
	static const struct option flags[] = {
		{"impl", required_argument, NULL, 'i'}, {"sizes", required_argument, NULL, 's'},
		{"np", required_argument, NULL, 'n'}, {"budget", required_argument, NULL, 'b'},
		{"format", required_argument, NULL, 'f'}, {"type", required_argument, NULL, 't'},
		{"redop", required_argument, NULL, 'r'}, {"version", no_argument, NULL, 'v'}, {0},
	};
	int f;
	opterr = 0, impl = "ucx";
	while ((f = getopt_long_only(argc, argv, "", flags, NULL)) != -1) {
		switch (f) {
		case 'i': impl = optarg; break;
		case 's': list = optarg; break;
		case 'b': budget = parse_budget(optarg); break;
		case 't': case 'r': break; /* bytes are all the same here */
		case 'v': puts(ucp_get_version_string()), exit(0);
		case 'n':
			if (strcmp(optarg, "2"))
				fail("want 2 for -np, not", optarg);
			break;
		case 'f':
			if (strcmp(optarg, "csv"))
				fail("want csv for -format, not", optarg);
			break;
		default:
			fail("want -impl, -sizes, -np, -budget, -format, -type, -redop or -version, not",
			     argv[optind - 1]);
		}
	}
	for (int i = optind; i < argc; i++)
		find(argv[i]);
}

int main(int argc, char **argv) {
	static long sizes[MOST_SIZES];
	static i64 times[MOST_ITERS];
	long most;
	parse(argc, argv);
	int count = parse_sizes(list, sizes, &most);
	launch();
	bind_rank();
	open_worker();
	connect_ranks();
	sent = new_vector(most), received = new_vector(most);
	if (rank == 0)
		puts(COLUMNS);
	for (; optind < argc; optind++) {
		for (int i = 0; i < count; i++) {
			struct cell k = {find(argv[optind]), sizes[i], window_of(sizes[i])};
			measure(&k, times);
		}
	}
	leave();
	return 0;
}
