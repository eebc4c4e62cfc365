/* Rank 1 throws an exception that nothing catches. */
#include <mpi.h>
#include <stdexcept>

namespace app {
int check(int rank)
{
	if (rank == 1)
		throw std::runtime_error("no data"); // throw
	return rank;
}
}

int main(int argc, char **argv)
{
	int rank;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	app::check(rank); // main
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
}
