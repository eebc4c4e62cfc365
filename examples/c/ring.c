/* A number goes around all ranks, and each adds its own. gompirun -np 4 ./ring */
#include <stdio.h>
#include <stdlib.h>

#include "gompi.h"

static void check(int err) {
	if (err) {
		fprintf(stderr, "ring: %s\n", gompi_error());
		exit(1);
	}
}

int main(void) {
	int rank, size;
	int64_t sum = 0;

	check(gompi_init());
	check(gompi_rank(GOMPI_WORLD, &rank));
	check(gompi_size(GOMPI_WORLD, &size));
	if (rank > 0)
		check(gompi_recv(GOMPI_WORLD, &sum, 1, GOMPI_INT64, rank - 1, 0, NULL));
	sum += rank;
	check(gompi_send(GOMPI_WORLD, &sum, 1, GOMPI_INT64, (rank + 1) % size, 0));
	if (rank == 0) {
		check(gompi_recv(GOMPI_WORLD, &sum, 1, GOMPI_INT64, size - 1, 0, NULL));
		printf("around %d ranks: %lld, want %d\n", size, (long long)sum, size * (size - 1) / 2);
	}
	check(gompi_finalize());
	return rank == 0 && sum != size * (size - 1) / 2;
}
