/* Memory of gompi_alloc that goes with its communicator: garbage collections find nothing of it. */
#include "check.h"

int main(void) {
	gompi_comm all, alone;
	void *memory;
	int me, size, i;

	OK(gompi_init());
	me = rank_of(GOMPI_WORLD);
	size = size_of(GOMPI_WORLD);
	for (i = 0; i < 3; i++) {
		OK(gompi_dup(GOMPI_WORLD, &all));
		OK(gompi_split(GOMPI_WORLD, me, 0, &alone));
		OK(gompi_alloc(all, 1, &memory));
		OK(gompi_alloc(alone, 1, &memory));
		OK(gompi_dealloc(alone, memory));
		OK(gompi_alloc(alone, 1, &memory));
		OK(gompi_free(all));
		OK(gompi_free(alone));
	}
	for (i = 0; i < 2000; i++) { /* where it is Go's memory, each few of them begin a collection */
		OK(gompi_alloc_local(1 << 20, &memory));
		OK(gompi_dealloc_local(memory));
	}
	OK(gompi_alloc(GOMPI_WORLD, 1, &memory));
	OK(gompi_finalize());
	printf("rank %d of %d done\n", me, size);
	return 0;
}
