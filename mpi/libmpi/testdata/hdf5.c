/* Parallel HDF5: hdf5 FILE. Ranks write parts of datasets, each for itself and together, and read
 * those of others. */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(x) do { if (!(x)) { fprintf(stderr, "hdf5.c, line %d: %s\n", __LINE__, #x); MPI_Abort(MPI_COMM_WORLD, 1); } } while (0)

enum { ROWS = 60, COLUMNS = 96, CHUNK = 7 };
static int rank, size;

static double value(hsize_t row, hsize_t column) { return row * 1000. + column; }

/* part selects the columns of a rank, or some of its rows, with a stride. */
static void part(hid_t space, int of, int by_rows, hsize_t count[2])
{
	hsize_t start[2] = {0, of * (COLUMNS / size)}, stride[2] = {1, 1};
	count[0] = ROWS, count[1] = COLUMNS / size;
	if (by_rows) {
		start[0] = of, start[1] = 0, stride[0] = size;
		count[0] = ROWS / size, count[1] = COLUMNS;
	}
	CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, NULL) >= 0);
}

/* move writes, or reads and checks, the part of a rank. */
static void move(hid_t set, int of, int by_rows, H5FD_mpio_xfer_t how, int write)
{
	hsize_t count[2], i, j;
	hid_t in_file = H5Dget_space(set), transfer = H5Pcreate(H5P_DATASET_XFER);
	part(in_file, of, by_rows, count);
	hid_t in_memory = H5Screate_simple(2, count, NULL);
	double *a = calloc(count[0] * count[1], sizeof *a);
	CHECK(H5Pset_dxpl_mpio(transfer, how) >= 0);
	for (int check = 0; check < 2; check++) {
		for (i = 0; i < count[0]; i++)
			for (j = 0; j < count[1]; j++) {
				double x = by_rows ? value(of + i * size, j) : value(i, of * (COLUMNS / size) + j);
				if (write)
					a[i * count[1] + j] = x;
				else if (check)
					CHECK(a[i * count[1] + j] == x);
			}
		if (check == 0 && write)
			CHECK(H5Dwrite(set, H5T_NATIVE_DOUBLE, in_memory, in_file, transfer, a) >= 0);
		else if (check == 0)
			CHECK(H5Dread(set, H5T_NATIVE_DOUBLE, in_memory, in_file, transfer, a) >= 0);
	}
	free(a);
	H5Sclose(in_memory);
	H5Sclose(in_file);
	H5Pclose(transfer);
}

static hid_t access_of(void)
{
	hid_t access = H5Pcreate(H5P_FILE_ACCESS);
	CHECK(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL) >= 0);
	return access;
}

static void write_all(const char *name)
{
	hsize_t dims[2] = {ROWS, COLUMNS}, chunk[2] = {CHUNK, CHUNK}, one = 1;
	hid_t access = access_of(), file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access);
	CHECK(file >= 0);
	hid_t space = H5Screate_simple(2, dims, NULL), chunked = H5Pcreate(H5P_DATASET_CREATE);
	H5Pset_chunk(chunked, 2, chunk);
	const char *names[4] = {"columns", "rows", "chunks", "alone"};
	for (int k = 0; k < 4; k++) {
		hid_t set = H5Dcreate2(file, names[k], H5T_IEEE_F64BE, space, H5P_DEFAULT, k == 2 ? chunked : H5P_DEFAULT, H5P_DEFAULT);
		CHECK(set >= 0);
		move(set, rank, k == 1, k == 3 ? H5FD_MPIO_INDEPENDENT : H5FD_MPIO_COLLECTIVE, 1);
		hid_t scalar = H5Screate_simple(1, &one, NULL);
		hid_t attribute = H5Acreate2(set, "number", H5T_STD_I32LE, scalar, H5P_DEFAULT, H5P_DEFAULT);
		CHECK(H5Awrite(attribute, H5T_NATIVE_INT, &k) >= 0);
		H5Aclose(attribute);
		H5Sclose(scalar);
		H5Dclose(set);
	}
	H5Pclose(chunked);
	H5Sclose(space);
	H5Pclose(access);
	CHECK(H5Fclose(file) >= 0);
}

static void read_all(const char *name)
{
	hid_t access = access_of(), file = H5Fopen(name, H5F_ACC_RDONLY, access);
	CHECK(file >= 0);
	const char *names[4] = {"columns", "rows", "chunks", "alone"};
	for (int k = 0; k < 4; k++) {
		int number = -1;
		hid_t set = H5Dopen2(file, names[k], H5P_DEFAULT), attribute = H5Aopen(set, "number", H5P_DEFAULT);
		CHECK(H5Aread(attribute, H5T_NATIVE_INT, &number) >= 0 && number == k);
		move(set, (rank + 1) % size, k % 2, H5FD_MPIO_COLLECTIVE, 0);
		move(set, (rank + 2) % size, 1, H5FD_MPIO_INDEPENDENT, 0);
		H5Aclose(attribute);
		H5Dclose(set);
	}
	H5Pclose(access);
	CHECK(H5Fclose(file) >= 0);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	write_all(argv[1]);
	read_all(argv[1]);
	MPI_Finalize();
	if (rank == 0)
		printf("hdf5: no errors\n");
	return 0;
}
