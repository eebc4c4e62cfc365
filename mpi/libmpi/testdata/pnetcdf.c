/* PnetCDF: pnetcdf FILE. Ranks write parts of variables in all the ways that it has, and read those
 * of others. */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(x) do { if (!(x)) { fprintf(stderr, "pnetcdf.c, line %d: %s\n", __LINE__, #x); MPI_Abort(MPI_COMM_WORLD, 1); } } while (0)
#define OK(call) do { int e = (call); if (e) { fprintf(stderr, "pnetcdf.c, line %d: %s: %s\n", __LINE__, #call, ncmpi_strerror(e)); MPI_Abort(MPI_COMM_WORLD, 1); } } while (0)

enum { ROWS = 40, COLUMNS = 48, STEPS = 5 };
static int rank, size;

static int value(int step, int row, int column) { return step * 10000 + row * 100 + column; }

static void fill(int *a, int of, int step, int check)
{
	int width = COLUMNS / size;
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < width; j++) {
			int x = value(step, i, of * width + j);
			if (check)
				CHECK(a[i * width + j] == x);
			a[i * width + j] = x;
		}
}

int main(int argc, char **argv)
{
	int f, dims[3], fixed, record, own, requests[STEPS], statuses[STEPS], width;
	char text[32] = "";
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	width = COLUMNS / size;
	int *a = malloc(STEPS * ROWS * width * sizeof *a);
	MPI_Offset start[3] = {0, 0, rank * width}, count[3] = {1, ROWS, width};

	OK(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &f));
	OK(ncmpi_def_dim(f, "step", NC_UNLIMITED, &dims[0]));
	OK(ncmpi_def_dim(f, "row", ROWS, &dims[1]));
	OK(ncmpi_def_dim(f, "column", COLUMNS, &dims[2]));
	OK(ncmpi_def_var(f, "fixed", NC_INT, 2, dims + 1, &fixed));
	OK(ncmpi_def_var(f, "record", NC_INT, 3, dims, &record));
	OK(ncmpi_def_var(f, "own", NC_DOUBLE, 1, dims + 1, &own));
	OK(ncmpi_put_att_text(f, NC_GLOBAL, "title", 5, "files"));
	OK(ncmpi_enddef(f));
	fill(a, rank, 7, 0);
	OK(ncmpi_put_vara_int_all(f, fixed, start + 1, count + 1, a));
	for (int s = 0; s < STEPS; s++) { /* together, at the end */
		start[0] = s;
		fill(a + s * ROWS * width, rank, s, 0);
		OK(ncmpi_iput_vara_int(f, record, start, count, a + s * ROWS * width, &requests[s]));
	}
	OK(ncmpi_wait_all(f, STEPS, requests, statuses));
	for (int s = 0; s < STEPS; s++)
		OK(statuses[s]);
	OK(ncmpi_begin_indep_data(f)); /* each for itself: every size-th element */
	MPI_Offset first = rank, n = (ROWS - rank + size - 1) / size, stride = size;
	double *d = malloc(ROWS * sizeof *d);
	for (int i = 0; i < n; i++)
		d[i] = rank + i * size + 0.5;
	OK(ncmpi_put_vars_double(f, own, &first, &n, &stride, d));
	OK(ncmpi_end_indep_data(f));
	OK(ncmpi_close(f));

	OK(ncmpi_open(MPI_COMM_WORLD, argv[1], NC_NOWRITE, MPI_INFO_NULL, &f));
	OK(ncmpi_get_att_text(f, NC_GLOBAL, "title", text));
	CHECK(strcmp(text, "files") == 0);
	int of = (rank + 1) % size;
	start[2] = of * width;
	OK(ncmpi_get_vara_int_all(f, fixed, start + 1, count + 1, a));
	fill(a, of, 7, 1);
	for (int s = 0; s < STEPS; s++) {
		start[0] = s;
		OK(ncmpi_get_vara_int_all(f, record, start, count, a));
		fill(a, of, s, 1);
	}
	OK(ncmpi_get_var_double_all(f, own, d));
	for (int i = 0; i < ROWS; i++)
		CHECK(d[i] == i + 0.5);
	OK(ncmpi_close(f));
	MPI_Finalize();
	if (rank == 0)
		printf("pnetcdf: no errors\n");
	return 0;
}
