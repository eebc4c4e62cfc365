/* MPI_Comm_spawn, which is not implemented, for the one program that does not bear that. */
#include "face.h"
#include <string.h>

/* The thread of mpi4py's MPIPoolExecutor that starts the workers ends with an error that the program
 * does not see, and whoever asks the pool for a result waits without end. So the program ends. */
static int is_worker_of_mpi4py(char **argv)
{
	for (; argv && *argv; argv++)
		if (!strcmp(*argv, "mpi4py.futures.server"))
			return 1;
	return 0;
}

int MPI_Comm_spawn(const char *command, char *argv[], int maxprocs, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made, int codes[])
{
	(void)command, (void)maxprocs, (void)info, (void)root, (void)made, (void)codes;
	if (!is_worker_of_mpi4py(argv))
		return gompi_missing_on("MPI_Comm_spawn", IN_comm(comm));
	gompi_end("gompi: MPI_Comm_spawn, by which MPIPoolExecutor wants to start its workers, is not implemented by gompi: "
	          "start them with the program: gompirun -np N python3 -m mpi4py.futures SCRIPT\n");
}
