/* mpihello is hello for an MPI library, for gompi-bench launch: say so, join, meet,
 * one line for each rank, leave. The line holds the time inside MPI_Init and the
 * peak memory of the rank. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

static double now_ms(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static long peak_kb(void) {
	char line[256];
	long kb = 0;
	FILE *f = fopen("/proc/self/status", "r");
	if (!f)
		return 0;
	while (fgets(line, sizeof line, f) && sscanf(line, "VmHWM: %ld", &kb) != 1)
		;
	fclose(f);
	return kb;
}

int main(int argc, char **argv) {
	int rank, np;
	puts("here");
	fflush(stdout);
	double start = now_ms();
	MPI_Init(&argc, &argv);
	double init = now_ms() - start;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &np);
	MPI_Barrier(MPI_COMM_WORLD);
	printf("rank %d of %d: init_ms=%.1f peak_kb=%ld\n", rank, np, init, peak_kb());
	MPI_Finalize();
	return 0;
}
