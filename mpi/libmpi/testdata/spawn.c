/* MPI_Comm_spawn: its error is the program's to handle, but for the workers of mpi4py's pool (argument
 * "pool"), whose master would wait for them without end. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	char *others[] = {"-m", "mine.server", NULL}, *pool[] = {"-m", "mpi4py.futures.server", NULL};
	int err, class;
	MPI_Comm made;
	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	err = MPI_Comm_spawn("python3", argc > 1 ? pool : others, 2, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made, MPI_ERRCODES_IGNORE);
	MPI_Error_class(err, &class);
	if (class == MPI_ERR_UNSUPPORTED_OPERATION)
		printf("spawn: no errors\n");
	MPI_Finalize();
	return 0;
}
