/* examples/heat in C, without its check and its picture: the same plate, blocks, halo and steps.
 * heat [ROWS COLS STEPS] prints what a step takes, and by how much the last one changed a point. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rows = 300, cols = 400, steps = 1000;
static int top, left, height, width; /* of this rank's block; each row has width + 2 points */
static double *u, *next;

static double at_first(int row, int col)
{
	double y = (double)row / rows, x = (double)col / rows;
	if (row < 0)
		return 1;
	if (row >= rows || col < 0 || col >= cols)
		return 0;
	return hypot(y - 0.6, x - 0.4) < 0.2 || hypot(y - 0.75, x - 0.9) < 0.1;
}

static void relax(int first, int end, int from, int to)
{
	int w = width + 2;
	for (int r = first; r < end; r++) {
		const double *above = u + (r - 1) * w, *here = u + r * w, *below = u + (r + 1) * w;
		double *out = next + r * w;
		for (int c = from; c < to; c++)
			out[c] = (above[c] + below[c] + here[c - 1] + here[c] + here[c + 1]) * (1. / 5);
	}
}

static void step(MPI_Comm grid, const MPI_Datatype types[4])
{
	static const int counts[4] = {1, 1, 1, 1};
	MPI_Aint w = width + 2, size = sizeof(double);
	MPI_Aint out[4] = {(w + 1) * size, (height * w + 1) * size, (w + 1) * size, (w + width) * size};
	MPI_Aint in[4] = {size, ((height + 1) * w + 1) * size, w * size, (w + width + 1) * size};
	MPI_Request request;
	MPI_Ineighbor_alltoallw(u, counts, out, types, u, counts, in, types, grid, &request);
	relax(2, height, 2, width);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	relax(1, 2, 1, width + 1);
	relax(height, height + 1, 1, width + 1);
	relax(2, height, 1, 2);
	relax(2, height, width, width + 1);
	double *t = u;
	u = next;
	next = t;
}

int main(int argc, char **argv)
{
	int rank, size, dims[2] = {0}, periods[2] = {0}, at[2];
	MPI_Comm grid;
	MPI_Datatype row, column;
	MPI_Init(&argc, &argv);
	if (argc == 4)
		rows = atoi(argv[1]), cols = atoi(argv[2]), steps = atoi(argv[3]);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Dims_create(size, 2, dims);
	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
	MPI_Comm_rank(grid, &rank);
	MPI_Cart_coords(grid, rank, 2, at);
	top = rows * at[0] / dims[0], height = rows * (at[0] + 1) / dims[0] - top;
	left = cols * at[1] / dims[1], width = cols * (at[1] + 1) / dims[1] - left;
	int points = (height + 2) * (width + 2);
	u = malloc(points * sizeof *u), next = malloc(points * sizeof *next);
	for (int i = 0; i < points; i++)
		u[i] = next[i] = at_first(top + i / (width + 2) - 1, left + i % (width + 2) - 1);
	MPI_Type_contiguous(width, MPI_DOUBLE, &row);
	MPI_Type_vector(height, 1, width + 2, MPI_DOUBLE, &column);
	MPI_Type_commit(&row);
	MPI_Type_commit(&column);
	MPI_Datatype types[4] = {row, row, column, column};
	double begin = MPI_Wtime(), most = 0, all;
	for (int i = 0; i < steps; i++)
		step(grid, types);
	double each = (MPI_Wtime() - begin) / steps * 1e6;
	for (int i = 0; i < points; i++)
		most = fmax(most, fabs(u[i] - next[i]));
	MPI_Reduce(&most, &all, 1, MPI_DOUBLE, MPI_MAX, 0, grid);
	if (rank == 0)
		printf("%d x %d points on %d x %d ranks: %.3fus a step; the last of %d changed a point by %.2g at most\n",
		       rows, cols, dims[0], dims[1], each, steps, all);
	MPI_Type_free(&row);
	MPI_Type_free(&column);
	MPI_Comm_free(&grid);
	MPI_Finalize();
	return 0;
}
