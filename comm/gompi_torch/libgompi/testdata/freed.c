/* Memory of gompi_alloc_local: garbage collections find nothing of it. */
#include "check.h"

int main(void) {
	void *memory;

	OK(gompi_init(0));
	for (int i = 0; i < 2000; i++) { /* where it is Go's memory, each few of them begin a collection */
		OK(gompi_alloc_local(1 << 20, &memory));
		OK(gompi_dealloc_local(memory));
	}
	printf("rank %d of %d done\n", rank_of(GOMPI_WORLD), size_of(GOMPI_WORLD));
	OK(gompi_finalize());
	return 0;
}
