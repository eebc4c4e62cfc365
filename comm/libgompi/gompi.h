/*
 * gompi.h: messages and collectives between the ranks of a job, for C and whatever speaks C.
 *
 * gompirun starts the ranks. Each calls gompi_init, and then has a number in GOMPI_WORLD, the
 * communicator of all ranks. docs/c.md says how to build and link a program.
 *
 * Errors. A function returns GOMPI_OK, which is 0, or one of the codes below, and then
 * gompi_error() is the text of it. After GOMPI_ERR_ARGUMENT nothing was sent and nothing is broken.
 *
 * Buffers. They are ordinary memory of the program, aligned as its element type wants. Lengths are
 * counts of elements, never bytes, unless a comment says so. A buffer of no elements may be NULL,
 * and so may one that means nothing on a rank. send and recv do not overlap, unless the call is in
 * place: each collective says how. When a call returns, also with an error, nothing touches its
 * buffers any more; those of gompi_isend and gompi_irecv belong to the library until the request is
 * complete.
 *
 * Blocking. A function that blocks says so. It waits as long as it takes, or as gompi_set_timeout
 * says. If a rank dies, all calls that wait for it return GOMPI_ERR_REVOKED.
 *
 * Threads. All functions may be called from any thread, and several at once. Collectives of one
 * communicator are called by one thread at a time: a second gets GOMPI_ERR_CONCURRENT. All ranks
 * call the collectives of a communicator in the same order.
 *
 * Processes. A child made by fork() after gompi_init was called is not a rank: every call there
 * returns GOMPI_ERR_FORKED at once, and the connections of the rank are closed there. It may start
 * another program with exec. A child made before that may itself call gompi_init.
 */
#ifndef GOMPI_H
#define GOMPI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What functions return. */
enum {
	GOMPI_OK = 0,
	GOMPI_ERR_ARGUMENT = 1,    /* an argument is wrong */
	GOMPI_ERR_MISMATCH = 2,    /* ranks called different collectives, or with different arguments */
	GOMPI_ERR_REVOKED = 3,     /* the communicator is broken: a rank died or was cut off */
	GOMPI_ERR_LEFT = 4,        /* the peer has left the communicator */
	GOMPI_ERR_TRUNCATED = 5,   /* a message was longer than its buffer, which has the beginning */
	GOMPI_ERR_TYPE = 6,        /* a message has another element type; it is lost */
	GOMPI_ERR_CLOSED = 7,      /* the communicator was freed while the call waited */
	GOMPI_ERR_CONCURRENT = 8,  /* another thread is inside a collective of the communicator */
	GOMPI_ERR_MEMORY = 9,      /* gompi_alloc: some rank has not as much memory */
	GOMPI_ERR_STATE = 10,      /* before gompi_init, after gompi_finalize, or gompi_init twice */
	GOMPI_ERR_FORKED = 11,     /* this is a child of the process that called gompi_init */
	GOMPI_ERR_LIBRARY = 12,    /* libgompi-core.so is not there or of another version, or Go runs here already */
	GOMPI_ERR_OTHER = 13,      /* anything else; gompi_error() says what */
	GOMPI_ERR_TIMEOUT = 14,    /* a call took longer than gompi_set_timeout allows */
	GOMPI_ERR_INTERRUPTED = 15 /* the function of gompi_set_check has ended the call */
};

/* The types of elements. The numbers stay as they are. */
typedef enum {
	GOMPI_INT8 = 1,
	GOMPI_INT16 = 2,
	GOMPI_INT32 = 3,
	GOMPI_INT64 = 4,
	GOMPI_UINT8 = 5,
	GOMPI_UINT16 = 6,
	GOMPI_UINT32 = 7,
	GOMPI_UINT64 = 8,
	GOMPI_FLOAT16 = 9,         /* IEEE 754 binary16 */
	GOMPI_BFLOAT16 = 10,
	GOMPI_FLOAT32 = 11,
	GOMPI_FLOAT64 = 12,
	GOMPI_COMPLEX64 = 13,      /* float complex */
	GOMPI_COMPLEX128 = 14,     /* double complex */
	GOMPI_BOOL = 15,           /* _Bool: a byte, 0 or 1 */
	GOMPI_INT32_LOC = 16,      /* gompi_int32_loc, and so on: for GOMPI_MINLOC, GOMPI_MAXLOC */
	GOMPI_INT64_LOC = 17,
	GOMPI_FLOAT32_LOC = 18,
	GOMPI_FLOAT64_LOC = 19
} gompi_type;

typedef struct { int32_t value; int64_t index; } gompi_int32_loc;
typedef struct { int64_t value; int64_t index; } gompi_int64_loc;
typedef struct { float value; int64_t index; } gompi_float32_loc;
typedef struct { double value; int64_t index; } gompi_float64_loc;

/* The operators of reductions. */
typedef enum {
	GOMPI_SUM = 1,             /* sum, product and average: numbers */
	GOMPI_PROD = 2,
	GOMPI_AVG = 3,             /* the sum divided by the number of ranks; not of integers */
	GOMPI_MIN = 4,             /* all but complex numbers; NaN where an operand is NaN */
	GOMPI_MAX = 5,
	GOMPI_LAND = 6,            /* logical: integers and GOMPI_BOOL */
	GOMPI_LOR = 7,
	GOMPI_LXOR = 8,
	GOMPI_BAND = 9,            /* bitwise: integers and GOMPI_BOOL */
	GOMPI_BOR = 10,
	GOMPI_BXOR = 11,
	GOMPI_MINLOC = 12,         /* the least value, and of equal ones the least index */
	GOMPI_MAXLOC = 13
} gompi_op;

/* A communicator: ranks with messages and collectives of their own. */
typedef int64_t gompi_comm;
#define GOMPI_COMM_NULL ((gompi_comm)0)
#define GOMPI_WORLD ((gompi_comm)1) /* all ranks */

/* An operation under way. */
typedef int64_t gompi_request;
#define GOMPI_REQUEST_NULL ((gompi_request)0)

#define GOMPI_ANY_SOURCE (-1)
#define GOMPI_ANY_TAG (-1)
#define GOMPI_PROC_NULL (-2) /* no rank: a message with it is complete at once, and of no elements */
#define GOMPI_UNDEFINED (-1) /* a color of gompi_split: in no new communicator */

/* What a message was. Wherever a function fills one in, NULL may be given instead. */
typedef struct {
	int source; /* the rank that sent it */
	int tag;
	int type;     /* as it was sent; 0 if there was no message */
	size_t count; /* elements of the whole message, also when it was truncated */
	size_t bytes; /* the same in bytes */
} gompi_status;

/* ---- Begin and end ---- */

/*
 * gompi_init joins the job that this process belongs to. It blocks until all ranks have called it.
 * A process that no launcher has started is a job of one rank. It is called once. The environment
 * is read as it is now, with what setenv has changed; no other thread may change it meanwhile.
 */
int gompi_init(void);

/*
 * gompi_init_for is gompi_init for at most that many milliseconds, 1 or more. When they have passed and
 * some rank has not come it returns GOMPI_ERR_TIMEOUT, with a text that names ranks that it knows have
 * not: this process joins no job then.
 */
int gompi_init_for(int64_t milliseconds);

/*
 * gompi_finalize frees all communicators and leaves the job. It delivers what was sent, so it may
 * block, at most for ten seconds. No other call may be under way. A process that called gompi_init
 * and ends without gompi_finalize has failed, and gompirun ends the job.
 */
int gompi_finalize(void);

/*
 * gompi_abort asks the launcher to end all ranks of the job with an exit status of 1 to 255, and to
 * print reason, which may be NULL. It returns when the launcher was asked: the program exits then.
 */
int gompi_abort(int status, const char *reason);

/*
 * gompi_error returns the text of the last error that a call of this thread has returned, "" if
 * there was none. It stays as it is until a call of this thread fails. It never is NULL. Long texts
 * are cut.
 */
const char *gompi_error(void);

/* gompi_version returns the version of the library, for people. */
const char *gompi_version(void);

/* ---- Communicators ---- */

/* gompi_rank stores the number of this rank in c, from 0 on. */
int gompi_rank(gompi_comm c, int *rank);

/* gompi_size stores the number of ranks in c. */
int gompi_size(gompi_comm c, int *size);

/*
 * gompi_set_timeout limits how long each later call on c that blocks may take, on this rank; 0, as
 * in the beginning, is no limit. A call that takes longer returns GOMPI_ERR_TIMEOUT. A collective
 * that does so breaks c on all ranks, since they count on this one. A send or receive whose message
 * has matched waits for it, and breaks c if it stands still for 5 s more; another message is withdrawn,
 * and may be tried again. A request continues, and may be waited for again. gompi_free and
 * gompi_finalize have limits of their own.
 */
int gompi_set_timeout(gompi_comm c, int64_t milliseconds);

/*
 * gompi_set_check has the later calls of this thread that block ask check(arg, milliseconds), on this
 * thread, with the time that they have waited: first after about a millisecond, and again when as many
 * milliseconds have passed as check has returned; 0 is not again in this call. If it returns -1, the
 * call returns GOMPI_ERR_INTERRUPTED, and all is as if its time of gompi_set_timeout were over. It is for
 * what a thread does while it waits, such as an interpreter's signal handlers. check may call gompi,
 * and is not asked meanwhile. A collective of several steps may count each from its beginning. NULL, as
 * in the beginning, is no check.
 */
typedef int64_t (*gompi_check)(void *arg, int64_t milliseconds);
int gompi_set_check(gompi_check check, void *arg);

/*
 * gompi_set_site has the launcher's reports name the place where the program waits, such as
 * "train.py:31", until it is called again; NULL, as in the beginning, is none. It is for a function of
 * gompi_set_check: what it finds out costs time, which a wait that is long has.
 */
int gompi_set_site(const char *site);

/*
 * gompi_place stores a number for a place of the program, such as "train.py:31", for gompi_set_place. It
 * is 0 where gompirun counts no calls (-stats, -trace): then no more is asked for. A number is good until
 * the process ends, and takes memory until then.
 */
int gompi_place(const char *name, int *place);

/*
 * gompi_set_place has the later collectives of this thread counted as calls at a place of gompi_place; 0,
 * as in the beginning, is none. It is for languages in which a call's return address says nothing.
 */
int gompi_set_place(int place);

/*
 * gompi_set_background, with yes not 0, has the later collectives of this thread leave the processors to
 * other threads while they wait, if ranks of the communicator are on other hosts. It is for a thread that
 * communicates while others compute. In such a collective gompi_set_check's function is not asked.
 */
int gompi_set_background(int yes);

/*
 * gompi_split stores a communicator of the ranks that gave the same color, 0 or more, numbered by
 * key and, where keys are equal, by their number in c. A rank with the color GOMPI_UNDEFINED gets
 * GOMPI_COMM_NULL. All ranks of c call it; it blocks.
 */
int gompi_split(gompi_comm c, int color, int key, gompi_comm *result);

/*
 * gompi_create_group stores a communicator of n ranks, of which this is one: their numbers in c, in
 * the order of the new communicator. They alone call it, with the same ranks and tag, 0 or more;
 * groups that are made at the same time have different tags. It blocks. If it fails in the midst,
 * it fails for the others, too, or their new communicator breaks. Then they may call it again, with
 * the same tag, too.
 */
int gompi_create_group(gompi_comm c, const int *ranks, size_t n, int tag, gompi_comm *result);

/* gompi_dup stores a communicator of the same ranks. All ranks of c call it; it blocks. */
int gompi_dup(gompi_comm c, gompi_comm *result);

/*
 * gompi_free frees what gompi_split, gompi_create_group or gompi_dup has stored, with its memory of gompi_alloc. All
 * calls on c are over by then, but for requests, which it ends with GOMPI_ERR_CLOSED. Ranks may call
 * it at different times; it may wait for the others for up to a second.
 */
int gompi_free(gompi_comm c);

/*
 * gompi_hide has the launcher's reports of what ranks are in, and the counts of gompirun -stats, leave
 * out the calls on c of this rank: it is for those that a library makes on its own behalf. It is called
 * before all others on c.
 */
int gompi_hide(gompi_comm c);

/*
 * gompi_revoke breaks c on all of its ranks: calls that they are in, and later ones, return
 * GOMPI_ERR_REVOKED, and their text names this rank and the reason. It does not wait for them. On a
 * communicator that is broken it does nothing.
 */
int gompi_revoke(gompi_comm c, const char *reason);

/* ---- Memory ---- */

/*
 * gompi_alloc stores the address of zeroed memory that the other ranks of this host read and write
 * in place, which makes collectives and long messages faster. All ranks of c call it with the same
 * number of bytes, 1 or more; it blocks. If one rank cannot have the memory, all get
 * GOMPI_ERR_MEMORY. Memory may be used on any communicator, but only those with memory of their own
 * gain by it.
 */
int gompi_alloc(gompi_comm c, size_t bytes, void **memory);

/*
 * gompi_dealloc gives back what gompi_alloc of c has stored. All ranks of c call it, in the same
 * order; it blocks. The memory must not be touched any more.
 */
int gompi_dealloc(gompi_comm c, void *memory);

/*
 * gompi_alloc_local stores the address of zeroed memory as gompi_alloc does, of 1 byte or more, but
 * for this rank alone: it tells the others nothing, and does not block. The others read and write it
 * while a call with it is under way on this rank. The communicator of such a call gains by it if
 * gompi_alloc has given it memory, if only a byte. What a child made by fork() writes there its
 * parent sees.
 */
int gompi_alloc_local(size_t bytes, void **memory);

/*
 * gompi_dealloc_local gives back what gompi_alloc_local has stored, on any thread. After a collective
 * has failed on this rank, the memory is not used again, since other ranks may still be in it.
 */
int gompi_dealloc_local(void *memory);

/* ---- Messages ---- */

/*
 * gompi_send sends n elements to rank to, with a tag of 0 or more. It blocks until buf may be
 * changed again: a message longer than 64 KiB has then been matched by a receive.
 */
int gompi_send(gompi_comm c, const void *buf, size_t n, gompi_type type, int to, int tag);

/*
 * gompi_recv receives the oldest message from rank from, or GOMPI_ANY_SOURCE, with tag, or
 * GOMPI_ANY_TAG. It blocks until there is one. buf has room for n elements; the message may be
 * shorter.
 */
int gompi_recv(gompi_comm c, void *buf, size_t n, gompi_type type, int from, int tag, gompi_status *status);

/* gompi_isend starts a gompi_send and returns. buf must not change until the request is complete. */
int gompi_isend(gompi_comm c, const void *buf, size_t n, gompi_type type, int to, int tag, gompi_request *request);

/* gompi_irecv starts a gompi_recv and returns. buf must not be used until the request is complete. */
int gompi_irecv(gompi_comm c, void *buf, size_t n, gompi_type type, int from, int tag, gompi_request *request);

/*
 * gompi_wait blocks until the request is complete, returns its outcome, and sets *request to
 * GOMPI_REQUEST_NULL. To wait for that returns at once. A request must be waited for or tested until
 * it is done, by one thread: else it takes memory until gompi_finalize.
 */
int gompi_wait(gompi_request *request, gompi_status *status);

/*
 * gompi_wait_for is gompi_wait for at most that many milliseconds, 1 or more. When they have passed it
 * returns GOMPI_ERR_TIMEOUT, and the request continues: *request is as it was.
 */
int gompi_wait_for(gompi_request *request, int64_t milliseconds, gompi_status *status);

/*
 * gompi_test sets *done to 1 if the request is complete, with all that gompi_wait does, else to 0.
 * It does not block, but makes some progress.
 */
int gompi_test(gompi_request *request, int *done, gompi_status *status);

/*
 * gompi_probe blocks until there is a message that a gompi_recv with the same arguments would
 * receive, and describes it.
 */
int gompi_probe(gompi_comm c, int from, int tag, gompi_status *status);

/*
 * gompi_iprobe is gompi_probe without waiting: it sets *found to 1 if there is such a message, else to
 * 0. It makes some progress.
 */
int gompi_iprobe(gompi_comm c, int from, int tag, int *found, gompi_status *status);

/*
 * ---- Collectives ----
 *
 * All ranks of c call the same one, with the same type, operator, root and n; otherwise all get
 * GOMPI_ERR_MISMATCH. They block; a rank may return before others have called. A "block" is what
 * belongs to one rank; blocks follow each other by rank. counts and displs have a number for each
 * rank, of elements; displs NULL means one block after the other.
 */

/* gompi_barrier blocks until all ranks have called it. */
int gompi_barrier(gompi_comm c);

/* gompi_bcast copies the n elements of buf of rank root to buf of all ranks. */
int gompi_bcast(gompi_comm c, void *buf, size_t n, gompi_type type, int root);

/*
 * gompi_reduce combines the n elements of send of all ranks, each with those of the same place, into
 * recv of rank root. In place: at the root send == recv.
 */
int gompi_reduce(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type, gompi_op op, int root);

/* gompi_allreduce is gompi_reduce into recv of all ranks. In place: send == recv. */
int gompi_allreduce(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type, gompi_op op);

/*
 * gompi_reduce_scatter_block combines the send of all ranks, a block of n elements for each rank,
 * and gives each rank its block of the result, in recv. In place: recv is this rank's block of send,
 * or recv == send; the rest of send is scratch then.
 */
int gompi_reduce_scatter_block(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type, gompi_op op);

/*
 * gompi_reduce_scatter is the same with blocks of counts[i] elements, equal on all ranks. recv has
 * room for counts[this rank] elements.
 */
int gompi_reduce_scatter(gompi_comm c, const void *send, void *recv, const int64_t *counts, gompi_type type, gompi_op op);

/*
 * gompi_allgather puts the n elements of send of every rank, a block for each, into recv of all
 * ranks. In place: send is this rank's block of recv.
 */
int gompi_allgather(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type);

/*
 * gompi_allgatherv is the same with blocks of counts[i] elements at displs[i] of recv. send has
 * counts[this rank] elements. counts is equal on all ranks.
 */
int gompi_allgatherv(gompi_comm c, const void *send, void *recv, const int64_t *counts, const int64_t *displs, gompi_type type);

/*
 * gompi_gather puts the n elements of send of every rank, a block for each, into recv of rank root.
 * In place at the root: send is its block of recv.
 */
int gompi_gather(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type, int root);

/*
 * gompi_gatherv is the same with blocks of counts[i] elements at displs[i] of recv, which only the
 * root gives. n is the length of this rank's send, and counts[this rank] at the root.
 */
int gompi_gatherv(gompi_comm c, const void *send, size_t n, void *recv, const int64_t *counts, const int64_t *displs, gompi_type type, int root);

/*
 * gompi_scatter gives rank i the i-th block of n elements of send of rank root, in recv. In place at
 * the root: recv is its block of send.
 */
int gompi_scatter(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type, int root);

/*
 * gompi_scatterv is the same with blocks of counts[i] elements at displs[i] of send, which only the
 * root gives. n is the length of this rank's recv, and counts[this rank] at the root.
 */
int gompi_scatterv(gompi_comm c, const void *send, const int64_t *counts, const int64_t *displs, void *recv, size_t n, gompi_type type, int root);

/*
 * gompi_alltoall sends the i-th block of n elements of send to rank i, where it becomes the block of
 * recv that belongs to this rank. In place: send == recv.
 */
int gompi_alltoall(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type);

/*
 * gompi_alltoallv is the same with blocks of any length: send_counts[i] elements at send_displs[i]
 * of send go to rank i, and recv_counts[i] elements from rank i go to recv_displs[i] of recv. It is
 * not possible in place.
 */
int gompi_alltoallv(gompi_comm c, const void *send, const int64_t *send_counts, const int64_t *send_displs,
                    void *recv, const int64_t *recv_counts, const int64_t *recv_displs, gompi_type type);

/* gompi_scan combines the send of the ranks 0 to this one into recv. In place: send == recv. */
int gompi_scan(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type, gompi_op op);

/*
 * gompi_exscan combines the send of the ranks below this one into recv; that of rank 0 is left as it
 * is. In place: send == recv.
 */
int gompi_exscan(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type, gompi_op op);

#ifdef __cplusplus
}
#endif
#endif
