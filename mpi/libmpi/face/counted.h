/* Calls are counted, with gompirun -stats and while a tool has a variable started. The generated functions that communicate begin with COUNTED,
 * which counts the call, and its time when the function returns. Go and C add the bytes that it moves. */
#ifndef GOMPI_FACE_COUNTED_H
#define GOMPI_FACE_COUNTED_H
#include <stdbool.h>
#include "../shared.h"

#define HIDDEN __attribute__((visibility("hidden")))

extern struct gompi_stats gompi_stats HIDDEN; /* does not change once it is there */
extern bool gompi_counting HIDDEN;

/* gompi_counts reports whether calls are counted. Then gompi_stats is there: it is set before. */
static inline bool gompi_counts(void) { return __builtin_expect(__atomic_load_n(&gompi_counting, __ATOMIC_ACQUIRE), 0); }

/* All that was counted: what MPI_T's variables are differences of. */
struct gompi_totals {
	uint64_t calls, time, bytes, sent; /* time in nanoseconds, sent in bytes */
};

HIDDEN void gompi_count_from_now(void);
HIDDEN void gompi_count_for(int more);
HIDDEN struct gompi_totals gompi_count_totals(void);

struct gompi_span {
	struct gompi_site *site; /* NULL if the call is not counted */
	int64_t begin;           /* 0 if it is not timed */
	uint64_t moved;          /* by this thread, before */
	int64_t stands;          /* for so many calls; 0: it counts if it is long */
};

/* What a thread has moved, and its last message: calls of several threads may be under way. */
extern __thread struct gompi_moves {
	uint64_t bytes;
	int64_t peer, tag;
} gompi_moves HIDDEN;

HIDDEN void gompi_span_begin(struct gompi_span *s, const char *name, const void *caller);
HIDDEN void gompi_span_end(struct gompi_span *s);
HIDDEN void gompi_span_waits(struct gompi_span *s);
HIDDEN void gompi_count(int64_t bytes, int64_t peer, int64_t tag);
HIDDEN void gompi_count_sent(int local, int tag, uint64_t bytes);
HIDDEN void gompi_count_received(int local, int tag, uint64_t bytes);

static inline void gompi_span_leave(struct gompi_span *s)
{
	if (__builtin_expect(s->site != NULL, 0))
		gompi_span_end(s);
}

#define COUNTED(name) \
	__attribute__((cleanup(gompi_span_leave))) struct gompi_span span = {0}; \
	if (gompi_counts()) \
		gompi_span_begin(&span, name, __builtin_return_address(0))

/* WAITS is behind what a function does without Go: it may wait for long now, and is timed if it was not. */
#define WAITS() \
	do { \
		if (__builtin_expect(span.site && !span.begin, 0)) \
			gompi_span_waits(&span); \
	} while (0)

/* gompi_count_moved adds to the bytes of the call that is under way. */
static inline void gompi_count_moved(uint64_t bytes)
{
	if (gompi_counts()) {
		__atomic_fetch_add(&gompi_stats.counters->moved, bytes, __ATOMIC_RELAXED);
		gompi_moves.bytes += bytes;
	}
}

#endif
