/* Which functions of MPI are tried in C first: the generated ones begin with SHORT_name, where there
 * is one. It reports whether it has done all. */
#ifndef GOMPI_FACE_SHORT_H
#define GOMPI_FACE_SHORT_H
#include "face.h"

extern struct gompi_lease *gompi_lease; /* NULL without one */
void gompi_short_abandon(void);
int gompi_short_send(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
int gompi_short_recv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status);

int gompi_short_iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status);

#define SHORT_Iprobe gompi_short_iprobe
#define SHORT_Send gompi_short_send
#define SHORT_Rsend gompi_short_send
#define SHORT_Recv gompi_short_recv
#define SHORT_Isend(buf, count, datatype, dest, tag, comm, request) \
	((request) && gompi_short_send(buf, count, datatype, dest, tag, comm) && (*(request) = TO_request(GOMPI_REQUEST_DONE_ID), 1))

#endif
