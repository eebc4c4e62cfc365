/* Whether Go's runtime finds the room in the address space that it reserves when it is loaded. Without
 * that it ends the process, and prints its own stacks. */
#ifndef GOMPI_ROOM_H
#define GOMPI_ROOM_H
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* What it reserves, with the stacks of its first threads, in MiB. */
enum { GOMPI_ROOM = 1024 };

/* gompi_no_room returns 1, and says why, if there is not as much. */
static inline int gompi_no_room(char *why, size_t n)
{
	struct rlimit most;
	void *room = mmap(NULL, (size_t)GOMPI_ROOM << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room != MAP_FAILED) {
		munmap(room, (size_t)GOMPI_ROOM << 20);
		return 0;
	}
	if (getrlimit(RLIMIT_AS, &most) || most.rlim_cur == RLIM_INFINITY)
		return 0;
	snprintf(why, n, "the address space of a process may be %llu MiB (ulimit -v): want %d MiB more than the program takes, or unlimited",
	         (unsigned long long)most.rlim_cur >> 20, GOMPI_ROOM);
	return 1;
}

#endif
