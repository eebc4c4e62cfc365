/* Which functions of MPI are tried in C first: the generated ones begin with SHORT_name, where there
 * is one. It reports whether it has done all. */
#ifndef GOMPI_FACE_SHORT_H
#define GOMPI_FACE_SHORT_H
#include "face.h"

extern struct gompi_lease *gompi_lease; /* NULL without one */
void gompi_short_abandon(void);
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
	((request) && gompi_short_send(buf, count, datatype, dest, tag, comm) && (*(request) = TO_request(GOMPI_REQUEST_DONE_ID), 1))
#define SHORT_Irsend SHORT_Isend

/* What is sent here Go does not send: the last sets the argument of the generated function. */
#define SHORT_Sendrecv(out, outs, outtype, dest, sendtag, in, ins, intype, source, recvtag, comm, status) \
	(gompi_short_send(out, outs, outtype, dest, sendtag, comm) && \
	 (gompi_short_recv(in, ins, intype, source, recvtag, comm, status) || (dest = MPI_PROC_NULL, 0)))

#endif
