// MPI's C functions in C++: handles in containers, an error handler that throws, attributes that C
// and C++ functions share with Fortran's numbers.
#include <mpi.h>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <vector>

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	std::printf("throws: wrong: %s\n", what);
	std::fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 3);
}

struct failure : std::runtime_error {
	int code;
	explicit failure(int c) : std::runtime_error("MPI"), code(c) {}
};

static void thrower(MPI_Comm *, int *code, ...) { throw failure(*code); }

int main(int argc, char **argv)
{
	int rank, size, caught = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);

	std::map<MPI_Datatype, int> sizes = {{MPI_INT, 4}, {MPI_DOUBLE, 8}, {MPI_CHAR, 1}};
	for (const auto &s : sizes) {
		int n = 0;
		MPI_Type_size(s.first, &n);
		check(n == s.second, "size");
		check(MPI_Type_f2c(MPI_Type_c2f(s.first)) == s.first, "Fortran's number");
	}
	std::vector<int> all(size);
	MPI_Allgather(&rank, 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < size; i++)
		check(all[i] == i, "allgather");

	MPI_Errhandler h;
	MPI_Comm_create_errhandler(thrower, &h);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, h);
	for (int i = 0; i < 100; i++)
		try {
			MPI_Send(&rank, 1, MPI_INT, size + 5, 0, MPI_COMM_WORLD);
		} catch (const failure &f) {
			int errorclass = 0;
			MPI_Error_class(f.code, &errorclass);
			caught += errorclass == MPI_ERR_RANK;
		}
	check(caught == 100, "exceptions");
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Errhandler_free(&h);

	MPI_Comm dup;
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	check(MPI_Comm_f2c(MPI_Comm_c2f(dup)) == dup, "Fortran's number of a communicator");
	MPI_Comm_free(&dup);
	MPI_Finalize();
	if (rank == 0)
		std::printf("throws: no errors\n");
}
