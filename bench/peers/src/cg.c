/* cg solves a linear system by conjugate gradients, with the communication of HPCG: before each
 * product with the matrix a rank exchanges the surface of its block with up to 26 neighbours, by
 * MPI_Irecv, MPI_Send and MPI_Wait, and each scalar product is an MPI_Allreduce of 8 bytes.
 *
 *     mpirun -np 4 cg EDGE SOLUTIONS
 *
 * Each rank has a block of EDGE^3 points. A point's equation is 26 times itself less each of its 26
 * neighbours. Each of the SOLUTIONS takes 50 iterations. It prints the seconds of all of them. */
#include <math.h>
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { ITERATIONS = 50, NEIGHBOURS = 26, TAG = 7 };

/* A box of points, each bound included. */
struct box {
	int from[3], to[3];
};

struct neighbour {
	int rank;
	struct box inner, halo; /* what it gets, and where what it sends goes */
	int points;
	double *send, *recv;
};

static int rank, edge, row, plane; /* a row and a plane of points include the halo */
static size_t points;
static int dims[3], coords[3];
static MPI_Comm grid;
static struct neighbour neighbours[NEIGHBOURS];
static int count; /* of neighbours */

static void fail(const char *why) {
	fprintf(stderr, "cg: rank %d: %s\n", rank, why);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static double *vector(size_t n) {
	double *v = calloc(n, sizeof *v);
	if (!v)
		fail("no memory for its block");
	return v;
}

static size_t at(int x, int y, int z) { return (size_t)z * plane + (size_t)y * row + x; }

/* ---- the exchange of surfaces ---- */

static void add_neighbour(const int step[3]) {
	struct neighbour *n = &neighbours[count];
	int to[3];
	n->points = 1;
	for (int d = 0; d < 3; d++) {
		to[d] = coords[d] + step[d];
		if (to[d] < 0 || to[d] >= dims[d])
			return;
		n->inner.from[d] = step[d] > 0 ? edge : 1, n->inner.to[d] = step[d] < 0 ? 1 : edge;
		n->halo.from[d] = step[d] > 0 ? edge + 1 : step[d] < 0 ? 0 : 1;
		n->halo.to[d] = step[d] > 0 ? edge + 1 : step[d] < 0 ? 0 : edge;
		n->points *= step[d] ? 1 : edge;
	}
	MPI_Cart_rank(grid, to, &n->rank);
	n->send = vector(n->points), n->recv = vector(n->points);
	count++;
}

static void set_neighbours(void) {
	for (int i = 0; i < 27; i++) {
		int step[3] = {i % 3 - 1, i / 3 % 3 - 1, i / 9 - 1};
		if (step[0] || step[1] || step[2])
			add_neighbour(step);
	}
}

/* copy copies the points of a box of v to or from a buffer. */
static void copy(double *v, const struct box *b, double *buffer, int out) {
	for (int z = b->from[2]; z <= b->to[2]; z++)
		for (int y = b->from[1]; y <= b->to[1]; y++)
			for (int x = b->from[0]; x <= b->to[0]; x++, buffer++)
				if (out)
					*buffer = v[at(x, y, z)];
				else
					v[at(x, y, z)] = *buffer;
}

static void exchange(double *v) {
	MPI_Request requests[NEIGHBOURS];
	for (int i = 0; i < count; i++)
		MPI_Irecv(neighbours[i].recv, neighbours[i].points, MPI_DOUBLE, neighbours[i].rank, TAG, grid, &requests[i]);
	for (int i = 0; i < count; i++) {
		copy(v, &neighbours[i].inner, neighbours[i].send, 1);
		MPI_Send(neighbours[i].send, neighbours[i].points, MPI_DOUBLE, neighbours[i].rank, TAG, grid);
	}
	for (int i = 0; i < count; i++) {
		MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
		copy(v, &neighbours[i].halo, neighbours[i].recv, 0);
	}
}

/* ---- vectors, whose halo is 0 but in exchange ---- */

#define EACH_POINT \
	for (int z = 1; z <= edge; z++) \
		for (int y = 1; y <= edge; y++) \
			for (size_t i = at(1, y, z), last = i + edge; i < last; i++)

/* multiply sets y to the product of the matrix with x. */
static void multiply(double *result, double *v) {
	exchange(v);
	EACH_POINT {
		double sum = 0;
		for (int dz = -1; dz <= 1; dz++)
			for (int dy = -1; dy <= 1; dy++) {
				const double *near = v + i + (ptrdiff_t)dz * plane + (ptrdiff_t)dy * row;
				sum += near[-1] + near[0] + near[1];
			}
		result[i] = 27 * v[i] - sum;
	}
}

static double dot(const double *a, const double *b) {
	double sum = 0, all;
	EACH_POINT sum += a[i] * b[i];
	MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, grid);
	return all;
}

/* add sets v to a*v + b*w. */
static void add(double *v, double a, double b, const double *w) {
	EACH_POINT v[i] = a * v[i] + b * w[i];
}

/* set_right fills in the right side of the system that ones solve, by counting neighbours. */
static void set_right(double *b) {
	for (int z = 1; z <= edge; z++)
		for (int y = 1; y <= edge; y++)
			for (int x = 1; x <= edge; x++) {
				int here[3] = {x, y, z}, near = 1;
				for (int d = 0; d < 3; d++)
					near *= 3 - (coords[d] == 0 && here[d] == 1) - (coords[d] == dims[d] - 1 && here[d] == edge);
				b[at(x, y, z)] = 27 - near;
			}
}

static void check_exchange(double *v, double *result, const double *b) {
	EACH_POINT v[i] = 1;
	multiply(result, v);
	EACH_POINT if (result[i] != b[i]) fail("the exchange of surfaces brought wrong points");
}

/* solve returns the square of the residual that its iterations arrive at. */
static double solve(double *x, const double *b, double *r, double *p, double *ap) {
	EACH_POINT x[i] = 0, r[i] = p[i] = b[i];
	double rr = dot(r, r);
	for (int i = 0; i < ITERATIONS && rr > 0; i++) {
		multiply(ap, p);
		double alpha = rr / dot(p, ap), old = rr;
		add(x, 1, alpha, p), add(r, 1, -alpha, ap);
		rr = dot(r, r);
		add(p, rr / old, 1, r);
	}
	return rr;
}

int main(int argc, char **argv) {
	int np, periods[3] = {0, 0, 0}, solutions = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &np);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (argc != 3 || (edge = atoi(argv[1])) < 2 || (solutions = atoi(argv[2])) < 1)
		fail("want EDGE, 2 or more, and SOLUTIONS, 1 or more");
	MPI_Dims_create(np, 3, dims);
	MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 0, &grid);
	MPI_Cart_coords(grid, rank, 3, coords);
	row = edge + 2, plane = row * row, points = (size_t)plane * row;
	set_neighbours();
	double *x = vector(points), *b = vector(points), *r = vector(points), *p = vector(points), *ap = vector(points);
	set_right(b);
	check_exchange(x, ap, b);
	MPI_Barrier(grid);
	double start = MPI_Wtime(), rr = 0, took, slowest;
	for (int i = 0; i < solutions; i++)
		rr = solve(x, b, r, p, ap);
	took = MPI_Wtime() - start;
	multiply(ap, x), add(ap, -1, 1, b);
	double residual = sqrt(dot(ap, ap) / dot(b, b)), wanted = sqrt(rr / dot(b, b));
	if (!(fabs(residual - wanted) < 1e-9 && residual < 0.5))
		fail("the solution is none");
	MPI_Reduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, grid);
	if (rank == 0)
		printf("solved, residual %.1e\nseconds=%.6f\n", residual, slowest);
	MPI_Finalize();
	return 0;
}
