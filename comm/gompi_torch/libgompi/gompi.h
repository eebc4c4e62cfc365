/* gompi.h: the functions of libgompi.so, on which gompi_torch's C++ sources run. They pass valid arguments: NULL is no
 * address of a result, and types and operators are of the lists below.
 * Errors. A function returns GOMPI_OK, which is 0, or one of the codes below; gompi_error() has the text.
 * Buffers. Lengths are numbers of elements; a buffer of no elements may be NULL. After the return, also with an error,
 * the call no longer uses its buffers. The buffers of gompi_isend and gompi_irecv belong to the library until the
 * request is complete.
 * Blocking. A call waits without limit, or as gompi_set_timeout says. If a rank dies, all calls that wait for it
 * return GOMPI_ERR_REVOKED.
 * Threads. Any thread may call, and several at once. Collectives of one communicator are called by one thread at a
 * time; a second gets an error. All ranks call the collectives of a communicator in the same order.
 * Processes. A child made by fork() after gompi_init is no rank: calls in it fail at once, and its copies of the
 * rank's connections are closed. A child made before may itself call gompi_init. */
#ifndef GOMPI_H
#define GOMPI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The results of functions. */
enum {
	GOMPI_OK = 0,
	GOMPI_ERR_ARGUMENT = 1,    /* an argument is wrong: nothing was sent and nothing is broken */
	GOMPI_ERR_MISMATCH = 2,    /* ranks called different collectives, or with different arguments */
	GOMPI_ERR_REVOKED = 3,     /* the communicator is broken: a rank died or was cut off */
	GOMPI_ERR_LEFT = 4,        /* the peer has left the communicator */
	GOMPI_ERR_TRUNCATED = 5,   /* a message was longer than its buffer, which has the beginning */
	GOMPI_ERR_TIMEOUT = 6,     /* a call took longer than gompi_set_timeout allows */
	GOMPI_ERR_INTERRUPTED = 7, /* the function of gompi_set_check has ended the call */
	GOMPI_ERR_OTHER = 8
};

/* The types of elements, by the numbers of package mem. */
typedef enum {
	GOMPI_INT8 = 1, GOMPI_INT16 = 2, GOMPI_INT32 = 3, GOMPI_INT64 = 4,
	GOMPI_UINT8 = 5, GOMPI_UINT16 = 6, GOMPI_UINT32 = 7, GOMPI_UINT64 = 8,
	GOMPI_FLOAT16 = 9, GOMPI_BFLOAT16 = 10, GOMPI_FLOAT32 = 11, GOMPI_FLOAT64 = 12,
	GOMPI_COMPLEX64 = 13, GOMPI_COMPLEX128 = 14
} gompi_type;

/* The operators of reductions, by the numbers of package mem. The average of integers is an error. */
typedef enum {
	GOMPI_SUM = 1, GOMPI_PROD = 2, GOMPI_MIN = 3, GOMPI_MAX = 4, GOMPI_AVG = 5,
	GOMPI_BAND = 9, GOMPI_BOR = 10, GOMPI_BXOR = 11
} gompi_op;

/* A communicator: ranks with messages and collectives of their own. No number is used again. */
typedef int64_t gompi_comm;
#define GOMPI_COMM_NULL ((gompi_comm)0)
#define GOMPI_WORLD ((gompi_comm)1) /* all ranks */

/* An operation under way. */
typedef int64_t gompi_request;
#define GOMPI_REQUEST_NULL ((gompi_request)0)

#define GOMPI_ANY_SOURCE (-1)
#define GOMPI_ANY_TAG (-1)

/* The description of a message. A function that has a status takes NULL for it, too. */
typedef struct {
	int source; /* the rank that sent it */
	int tag;
	int type;     /* as it was sent; 0 if there was no message */
	size_t count; /* elements of the whole message, also when it was truncated */
	size_t bytes; /* the same in bytes */
} gompi_status;

/* ---- Begin and end ---- */

/* gompi_init joins the job of this process, once. It blocks until all ranks have called it, at most for that many
 * milliseconds; 0 is no limit. The error of a limit names ranks that are missing; this process joins no job then. A
 * process without a launcher is a job of one rank. The present environment counts, with the changes of setenv; no
 * other thread may change it meanwhile. */
int gompi_init(int64_t milliseconds);

/* gompi_finalize frees all communicators and leaves the job. It delivers pending messages, at most for ten seconds. No
 * other call may be under way. A process that called gompi_init and ends without gompi_finalize has failed, and
 * gompirun ends the job. */
int gompi_finalize(void);

/* gompi_abort asks the launcher to end all ranks of the job with an exit status, and to print a reason. It returns
 * once the launcher is asked: the program exits then. */
int gompi_abort(int status, const char *reason);

/* gompi_error returns the text of the last error of this thread, "" if there was none. The text is valid until a call
 * of this thread fails. Long texts are cut. */
const char *gompi_error(void);

/* gompi_version returns the version of the library, for people. */
const char *gompi_version(void);

/* ---- Communicators ---- */

/* gompi_rank stores the number of this rank in c, from 0 on. */
int gompi_rank(gompi_comm c, int *rank);

/* gompi_size stores the number of ranks in c. */
int gompi_size(gompi_comm c, int *size);

/* gompi_set_timeout limits the time of each later blocking call on c, on this rank; 0, as in the beginning, is no
 * limit. A collective that takes longer breaks c on all ranks, since they count on this one. A send or receive whose
 * message has matched waits for it, and breaks c if it stands still for 5 s more; another message is withdrawn, and
 * may be tried again. A request continues. gompi_free and gompi_finalize have limits of their own. */
int gompi_set_timeout(gompi_comm c, int64_t milliseconds);

/* gompi_set_check has the later blocking calls of this thread ask check(arg, milliseconds), on this thread, with the
 * time that they have waited: first after about a millisecond, and again after as many milliseconds as check returns;
 * 0 is not again in this call. If check returns -1, the call returns GOMPI_ERR_INTERRUPTED, as if its time of
 * gompi_set_timeout were over. check may call gompi, and is not asked meanwhile. A collective of several steps may
 * count each from its beginning. NULL, as in the beginning, is no check. */
typedef int64_t (*gompi_check)(void *arg, int64_t milliseconds);
void gompi_set_check(gompi_check check, void *arg);

/* gompi_set_site gives the launcher's reports the place where the program waits, such as "train.py:31", until the next
 * call; "", as at first, is none. It is for the function of gompi_set_check: a long wait has time to find it. */
int gompi_set_site(const char *site);

/* gompi_place stores a number for a place of the program, such as "train.py:31", for gompi_set_place. It is 0 where
 * gompirun counts no calls (-stats, -trace). A number, and its memory, is kept until the process ends. */
int gompi_place(const char *name, int *place);

/* gompi_set_place has later collectives of this thread counted at a place of gompi_place; 0, as at first, is none. */
void gompi_set_place(int place);

/* gompi_set_background has the later collectives of this thread leave the processors to other threads while they wait,
 * if ranks of the communicator are on other hosts. It is for a thread that communicates while others compute. In such
 * a collective the function of gompi_set_check is not asked. */
void gompi_set_background(int yes);

/* gompi_create_group stores a communicator of n ranks, of which this is one: their numbers in c, in the order of the
 * new communicator. They alone call it, with the same ranks and tag, 0 or more; groups that are made at the same time
 * have different tags. It blocks. If it fails in the midst, it fails for the others, too, or their new communicator
 * breaks. Then they may call it again, with the same tag, too. */
int gompi_create_group(gompi_comm c, const int *ranks, size_t n, int tag, gompi_comm *result);

/* gompi_dup stores a communicator of the same ranks. All ranks of c call it; it blocks. */
int gompi_dup(gompi_comm c, gompi_comm *result);

/* gompi_free frees a communicator of gompi_create_group or gompi_dup. All calls on c are over by then, but for
 * requests, which end with an error. Ranks may call it at different times; it may wait up to a second for others. */
int gompi_free(gompi_comm c);

/* gompi_hide has the launcher's reports of calls, and the counts of gompirun -stats, leave out the calls on c of this
 * rank: the library makes them on its own behalf. It is called before all others on c. */
int gompi_hide(gompi_comm c);

/* gompi_revoke breaks c on all of its ranks: present and later calls return GOMPI_ERR_REVOKED, and their text names
 * this rank and the reason. It does not wait for them. On a communicator that is broken it does nothing. */
int gompi_revoke(gompi_comm c, const char *reason);

/* ---- Memory ---- */

/* gompi_alloc_local stores the address of zeroed memory of 1 byte or more. While a call with this memory is under way,
 * the other ranks of this host read and write it in place, if the communicator of the call has gompi_share. A child
 * made by fork() shares the memory with its parent. */
int gompi_alloc_local(size_t bytes, void **memory);

/* gompi_dealloc_local gives back memory of gompi_alloc_local, on any thread. After a collective has failed on this
 * rank, the memory is not used again, since other ranks may still be in it. */
int gompi_dealloc_local(void *memory);

/* gompi_share has calls on c use memory of gompi_alloc_local in place. All ranks of c call it; it blocks. */
int gompi_share(gompi_comm c);

/* ---- Messages ---- */

/* gompi_send sends n elements to rank to, with a tag of 0 or more. It blocks until buf may be changed again: a message
 * longer than 64 KiB has then been matched by a receive. */
int gompi_send(gompi_comm c, const void *buf, size_t n, gompi_type type, int to, int tag);

/* gompi_recv receives the oldest message from rank from, or GOMPI_ANY_SOURCE, with tag, or GOMPI_ANY_TAG. It blocks
 * until there is one. buf has room for n elements; the message may be shorter. */
int gompi_recv(gompi_comm c, void *buf, size_t n, gompi_type type, int from, int tag, gompi_status *status);

/* gompi_isend starts a gompi_send and returns. */
int gompi_isend(gompi_comm c, const void *buf, size_t n, gompi_type type, int to, int tag, gompi_request *request);

/* gompi_irecv starts a gompi_recv and returns. */
int gompi_irecv(gompi_comm c, void *buf, size_t n, gompi_type type, int from, int tag, gompi_request *request);

/* gompi_wait blocks until the request is complete, returns its outcome, and sets *request to GOMPI_REQUEST_NULL; a
 * wait for that returns at once. After that many milliseconds, if not 0, it returns GOMPI_ERR_TIMEOUT, and the request
 * continues. One thread waits for or tests a request, until it is complete: else the request takes memory until
 * gompi_finalize. */
int gompi_wait(gompi_request *request, int64_t milliseconds, gompi_status *status);

/* gompi_test does as gompi_wait and sets *done to 1 if the request is complete, else *done to 0. It does not block,
 * but makes some progress. */
int gompi_test(gompi_request *request, int *done, gompi_status *status);

/* gompi_probe blocks until there is a message for a gompi_recv with the same arguments, and describes it. */
int gompi_probe(gompi_comm c, int from, int tag, gompi_status *status);

/* gompi_iprobe is gompi_probe without waiting, with some progress: *found is 1 if there is such a message, else 0. */
int gompi_iprobe(gompi_comm c, int from, int tag, int *found, gompi_status *status);

/* ---- Collectives ---- */

/* All ranks of c call the same one, with the same type, operator, root and n; otherwise all get GOMPI_ERR_MISMATCH.
 * They block; a rank may return before others have called. Each rank has a block of n elements, or of counts[i];
 * blocks follow each other by rank. In place: send is recv, or the block of this rank in the longer of the two. */

/* gompi_barrier blocks until all ranks have called it. */
int gompi_barrier(gompi_comm c);

/* gompi_bcast copies the n elements of buf of rank root to buf of all ranks. */
int gompi_bcast(gompi_comm c, void *buf, size_t n, gompi_type type, int root);

/* gompi_reduce combines the n elements of send of all ranks, each with those of the same place, into recv of root. */
int gompi_reduce(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type, gompi_op op, int root);

/* gompi_allreduce is gompi_reduce into recv of all ranks. */
int gompi_allreduce(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type, gompi_op op);

/* gompi_reduce_scatter_block combines the send of all ranks, a block for each rank, and gives each rank its block of
 * the result, in recv. In place the rest of send is scratch. */
int gompi_reduce_scatter_block(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type, gompi_op op);

/* gompi_reduce_scatter is the same with counts, which are equal on all ranks. */
int gompi_reduce_scatter(gompi_comm c, const void *send, void *recv, const int64_t *counts, gompi_type type,
                         gompi_op op);

/* gompi_allgather puts send, the block of each rank, into recv of all ranks. */
int gompi_allgather(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type);

/* gompi_allgatherv is the same with counts, which are equal on all ranks. */
int gompi_allgatherv(gompi_comm c, const void *send, void *recv, const int64_t *counts, gompi_type type);

/* gompi_gather puts send, the block of each rank, into recv of rank root. */
int gompi_gather(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type, int root);

/* gompi_scatter gives each rank its block of send of rank root, in recv. */
int gompi_scatter(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type, int root);

/* gompi_alltoallv sends block i of send, of send_counts[i] elements, to rank i, where it becomes the block of this
 * rank in recv, of recv_counts elements. It is not possible in place. */
int gompi_alltoallv(gompi_comm c, const void *send, const int64_t *send_counts, void *recv, const int64_t *recv_counts,
                    gompi_type type);

#ifdef __cplusplus
}
#endif
#endif
