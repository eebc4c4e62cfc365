/* Calls are counted, with gompirun -stats. The generated functions that communicate begin with COUNTED,
 * which counts the call, and its time when the function returns. Go and C add the bytes that it moves. */
#ifndef GOMPI_FACE_COUNTED_H
#define GOMPI_FACE_COUNTED_H
#include "../stats.h"

#define HIDDEN __attribute__((visibility("hidden")))

extern struct gompi_stats gompi_stats HIDDEN;

struct gompi_span {
	struct gompi_site *site; /* NULL if the call is not counted */
	int64_t begin;           /* 0 if it is not timed */
	uint64_t moved;
	int64_t stands;
};

HIDDEN void gompi_span_begin(struct gompi_span *s, const char *name, const void *caller);
HIDDEN void gompi_span_end(struct gompi_span *s);
HIDDEN void gompi_count_sent(int local, int tag, uint64_t bytes);
HIDDEN void gompi_count_received(int local, int tag, uint64_t bytes);

static inline void gompi_span_leave(struct gompi_span *s)
{
	if (__builtin_expect(s->site != NULL, 0))
		gompi_span_end(s);
}

#define COUNTED(name) \
	__attribute__((cleanup(gompi_span_leave))) struct gompi_span span = {0}; \
	if (__builtin_expect(gompi_stats.counters != NULL, 0)) \
		gompi_span_begin(&span, name, __builtin_return_address(0))

/* gompi_count_moved adds to the bytes of the call that is under way. */
static inline void gompi_count_moved(uint64_t bytes)
{
	if (__builtin_expect(gompi_stats.counters != NULL, 0))
		__atomic_fetch_add(&gompi_stats.counters->moved, bytes, __ATOMIC_RELAXED);
}

#endif
