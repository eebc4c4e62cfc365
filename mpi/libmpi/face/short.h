/* Functions of MPI that are tried in C first: the generated ones begin with SHORT_name, if any, which reports if it did all. */
#ifndef GOMPI_FACE_SHORT_H
#define GOMPI_FACE_SHORT_H
#include <stdbool.h>
#include "face.h"
#include "counted.h"
#include "lines.h"

extern struct gompi_lease *gompi_lease; /* NULL without one */
void gompi_short_abandon(void);

/* gompi_tossed reports whether an operation is left to Go, by a coin: for tests. */
static inline bool gompi_tossed(const struct gompi_lease *l)
{
	static __thread uint32_t x;
	if (!l->mix)
		return false;
	x = (x ? x : (uint32_t)(uintptr_t)&x) * 1664525 + 1013904223;
	return x >> 31;
}

static inline int gompi_slot_of(gompi_word comm)
{
	return comm == GOMPI_ID_COMM_WORLD ? 0 : (int)comm - GOMPI_FIRST_HANDLE + 1;
}

/* gompi_shape_of returns what an element is, of size 0 if C does not know. There is a lease. */
static inline struct gompi_shape gompi_shape_of(MPI_Datatype type)
{
	gompi_word id = IN_datatype(type), derived = id - GOMPI_FIRST_HANDLE;
	if (id >= 0 && id < GOMPI_LEASE_SIZES) {
		uint32_t size = gompi_lease->sizes[id];
		return (struct gompi_shape){.size = size, .run = size, .stride = (int32_t)size};
	}
	return derived >= 0 && derived < GOMPI_LEASE_SIZES ? gompi_lease->derived[derived] : (struct gompi_shape){0};
}

static inline bool gompi_dense(struct gompi_shape s) { return s.run == s.size && (uint32_t)s.stride == s.size; }

/* gompi_bytes_of returns how long count elements are, -1 if they are not one run of bytes, or not valid. There is a lease. */
static inline int64_t gompi_bytes_of(const void *buf, int64_t count, MPI_Datatype type)
{
	struct gompi_shape s = gompi_shape_of(type);
	return !s.size || !gompi_dense(s) || count < 0 || (!buf && count) ? -1 : count * (int64_t)s.size;
}

/* The communicator in whose collective this thread is inside. */
extern __thread struct gompi_team *gompi_inside_team __attribute__((tls_model("initial-exec")));

static inline void gompi_leave_team(struct gompi_team *t)
{
	gompi_inside_team = NULL;
	__atomic_store_n(&t->word, GOMPI_LEASE_LENT, __ATOMIC_RELEASE);
}

int gompi_short_barrier(MPI_Comm comm);
int gompi_short_bcast(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm);
int gompi_short_reduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm);
int gompi_short_allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int gompi_short_reduce_scatter_block(const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int gompi_short_allgather(const void *sendbuf, int sends, MPI_Datatype sendtype, void *recvbuf, int receives, MPI_Datatype recvtype,
			  MPI_Comm comm);
int gompi_short_alltoall(const void *sendbuf, int sends, MPI_Datatype sendtype, void *recvbuf, int receives, MPI_Datatype recvtype,
			 MPI_Comm comm);
int gompi_short_gather(const void *sendbuf, int sends, MPI_Datatype sendtype, void *recvbuf, int receives, MPI_Datatype recvtype,
		       int root, MPI_Comm comm);
int gompi_short_scatter(const void *sendbuf, int sends, MPI_Datatype sendtype, void *recvbuf, int receives, MPI_Datatype recvtype,
			int root, MPI_Comm comm);
int gompi_short_send(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
int gompi_short_recv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status);

int gompi_short_irecv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request);
int gompi_short_iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status);
int gompi_short_wait(MPI_Request *request, MPI_Status *status);
int gompi_short_test(MPI_Request *request, int *flag, MPI_Status *status);
int gompi_short_waitall(int n, MPI_Request *rs, MPI_Status *statuses);
int gompi_short_testall(int n, MPI_Request *rs, int *flag, MPI_Status *statuses);
int gompi_short_waitany(int n, MPI_Request *rs, int *index, MPI_Status *status);
int gompi_short_testany(int n, MPI_Request *rs, int *index, int *flag, MPI_Status *status);

void gompi_combine_here(int type, int op, void *to, const void *a, const void *b, int64_t n);
int gompi_short_put(const void *buf, int count, MPI_Datatype type, int rank, MPI_Aint offset, int there, MPI_Datatype typethere, MPI_Win win);
int gompi_short_get(void *buf, int count, MPI_Datatype type, int rank, MPI_Aint offset, int there, MPI_Datatype typethere, MPI_Win win);
int gompi_short_accumulate(const void *buf, int count, MPI_Datatype type, int rank, MPI_Aint offset, int there, MPI_Datatype typethere,
			   MPI_Op op, MPI_Win win);
int gompi_short_get_accumulate(const void *buf, int count, MPI_Datatype type, void *result, int results, MPI_Datatype resulttype, int rank,
			       MPI_Aint offset, int there, MPI_Datatype typethere, MPI_Op op, MPI_Win win);
int gompi_short_fetch_and_op(const void *buf, void *result, MPI_Datatype type, int rank, MPI_Aint offset, MPI_Op op, MPI_Win win);
int gompi_short_compare_and_swap(const void *buf, const void *compare, void *result, MPI_Datatype type, int rank, MPI_Aint offset, MPI_Win win);
int gompi_short_win_flush(int rank, MPI_Win win);
int gompi_short_win_flush_all(MPI_Win win);
int gompi_short_win_sync(MPI_Win win);
int gompi_short_win_lock(int type, int rank, int assertion, MPI_Win win);
int gompi_short_win_unlock(int rank, MPI_Win win);
int gompi_short_win_lock_all(int assertion, MPI_Win win);
int gompi_short_win_unlock_all(MPI_Win win);

#define SHORT_Put gompi_short_put
#define SHORT_Get gompi_short_get
#define SHORT_Accumulate gompi_short_accumulate
#define SHORT_Get_accumulate gompi_short_get_accumulate
#define SHORT_Fetch_and_op gompi_short_fetch_and_op
#define SHORT_Compare_and_swap gompi_short_compare_and_swap
#define SHORT_Win_flush gompi_short_win_flush
#define SHORT_Win_flush_local gompi_short_win_flush
#define SHORT_Win_flush_all gompi_short_win_flush_all
#define SHORT_Win_flush_local_all gompi_short_win_flush_all
#define SHORT_Win_sync gompi_short_win_sync
#define SHORT_Win_lock gompi_short_win_lock
#define SHORT_Win_unlock gompi_short_win_unlock
#define SHORT_Win_lock_all gompi_short_win_lock_all
#define SHORT_Win_unlock_all gompi_short_win_unlock_all
/* These are over at once where there is no target but memory. */
#define SHORT_Rput(buf, n, type, rank, offset, m, typethere, win, request) \
	((request) && gompi_short_put(buf, n, type, rank, offset, m, typethere, win) && (*(request) = TO_request(GOMPI_ID_REQUEST_DONE), 1))
#define SHORT_Rget(buf, n, type, rank, offset, m, typethere, win, request) \
	((request) && gompi_short_get(buf, n, type, rank, offset, m, typethere, win) && (*(request) = TO_request(GOMPI_ID_REQUEST_DONE), 1))

#define SHORT_Barrier gompi_short_barrier
#define SHORT_Bcast gompi_short_bcast
#define SHORT_Reduce gompi_short_reduce
#define SHORT_Allreduce gompi_short_allreduce
#define SHORT_Reduce_scatter_block gompi_short_reduce_scatter_block
#define SHORT_Allgather gompi_short_allgather
#define SHORT_Alltoall gompi_short_alltoall
#define SHORT_Gather gompi_short_gather
#define SHORT_Scatter gompi_short_scatter
#define SHORT_Iprobe gompi_short_iprobe
#define SHORT_Irecv gompi_short_irecv
#define SHORT_Wait gompi_short_wait
#define SHORT_Test gompi_short_test
#define SHORT_Waitall gompi_short_waitall
#define SHORT_Testall gompi_short_testall
#define SHORT_Waitany gompi_short_waitany
#define SHORT_Testany gompi_short_testany
#define SHORT_Send gompi_short_send
#define SHORT_Rsend gompi_short_send
#define SHORT_Recv gompi_short_recv
#define SHORT_Isend(buf, count, datatype, dest, tag, comm, request) \
	((request) && gompi_short_send(buf, count, datatype, dest, tag, comm) && (*(request) = TO_request(GOMPI_ID_REQUEST_DONE), 1))
#define SHORT_Irsend SHORT_Isend

/* What is sent here Go does not send: the last sets the argument of the generated function. */
#define SHORT_Sendrecv(out, outs, outtype, dest, sendtag, in, ins, intype, source, recvtag, comm, status) \
	(gompi_short_send(out, outs, outtype, dest, sendtag, comm) && \
	 (gompi_short_recv(in, ins, intype, source, recvtag, comm, status) || (dest = MPI_PROC_NULL, 0)))

#endif
