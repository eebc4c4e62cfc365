/* Handlers that the program sets run on stacks of their own, and on its own threads. */
#define _GNU_SOURCE
#include "check.h"
#include "../../../../internal/guest/testdata/handlers.h"

static void call(void) {
	static int32_t in[1 << 16], out[1 << 16];

	OK(gompi_allreduce(GOMPI_WORLD, in, out, 1 << 16, GOMPI_INT32, GOMPI_SUM));
}

int main(void) {
	handlers_before();
	OK(gompi_init(0));
	handlers_after(call);
	OK(gompi_finalize());
	printf("rank 0 of 1 done\n");
	return 0;
}
