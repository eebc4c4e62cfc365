/* Rank 1 does not come, and the others name it when their limit has passed. */
#include <unistd.h>

#include "check.h"

int main(void) {
	int me = atoi(getenv("GOMPI_RANK"));

	if (me == 1)
		pause();
	FAILS(gompi_init(300), GOMPI_ERR_TIMEOUT, "took longer than the limit, 300ms: rank 1 (host localhost) has not come");
	FAILS(gompi_init(0), GOMPI_ERR_OTHER, "gompi_init has failed");
	printf("rank %d names it\n", me);
	fflush(stdout);
	pause(); /* until the others have named it, too */
	return 0;
}
