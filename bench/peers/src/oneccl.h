/* The calls of mpibench.c by oneCCL: oneccl.cpp makes them. */
void oneccl_start(int rank, int np, const char *type, const char *redop);
void oneccl_barrier(void);
void oneccl_bcast(void *data, long n);
void oneccl_reduce(const void *send, void *recv, long n);
void oneccl_allreduce(const void *send, void *recv, long n);
void oneccl_allgather(const void *send, void *recv, long n);
void oneccl_reduce_scatter(const void *send, void *recv, long n);
void oneccl_alltoall(const void *send, void *recv, long n);

#ifndef __cplusplus
#define MPI_Barrier(comm) oneccl_barrier()
#define MPI_Bcast(data, n, type, root, comm) oneccl_bcast(data, n)
#define MPI_Reduce(send, recv, n, type, op, root, comm) oneccl_reduce(send, recv, n)
#define MPI_Allreduce(send, recv, n, type, op, comm) oneccl_allreduce(send, recv, n)
#define MPI_Allgather(send, n, type, recv, m, type2, comm) oneccl_allgather(send, recv, n)
#define MPI_Reduce_scatter_block(send, recv, n, type, op, comm) oneccl_reduce_scatter(send, recv, n)
#define MPI_Alltoall(send, n, type, recv, m, type2, comm) oneccl_alltoall(send, recv, n)
#endif
