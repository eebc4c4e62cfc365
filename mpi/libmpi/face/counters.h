/* For how long some thread is in a timed call. Functions have the names of their brothers in inside.go of package stats. */
#ifndef GOMPI_FACE_COUNTERS_H
#define GOMPI_FACE_COUNTERS_H
#include "../shared.h"

/* units */
static inline uint64_t units(int64_t at) { return (uint64_t)at >> GOMPI_STATS_CLOCK_BITS << GOMPI_STATS_THREAD_BITS; }

/* counters.enter */
static inline void counters_enter(struct gompi_counters *c, int64_t at)
{
	uint64_t was = __atomic_load_n(&c->inside, __ATOMIC_RELAXED), next;
	do
		next = was & GOMPI_STATS_THREADS ? was + 1 : units(at) | 1;
	while (!__atomic_compare_exchange_n(&c->inside, &was, next, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

/* counters.exit */
static inline void counters_exit(struct gompi_counters *c, int64_t begin, int64_t at, int64_t others)
{
	uint64_t was = __atomic_sub_fetch(&c->inside, 1, __ATOMIC_RELAXED);
	if (was & GOMPI_STATS_THREADS)
		return;
	int64_t period = ((int64_t)(units(at) - was) >> GOMPI_STATS_THREAD_BITS) * (1 << GOMPI_STATS_CLOCK_BITS) - c->clock;
	if (period < 0)
		period = 0;
	if (was == units(begin)) /* the period is this call's */
		period += period * others;
	__atomic_fetch_add(&c->busy, period, __ATOMIC_RELAXED);
}

#endif
