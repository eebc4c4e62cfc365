/* The memory in which calls are counted with gompirun -stats and -trace: package stats, which says what
 * is what. The offsets are compared with Go's when it is attached. */
#ifndef GOMPI_STATS_H
#define GOMPI_STATS_H
#include <stddef.h>
#include <stdint.h>

enum { GOMPI_SITES = 512, GOMPI_SPARE_SITES = 64, GOMPI_PROBES = 16 };
enum { GOMPI_SHORT_CALL = 2000, GOMPI_SAMPLED_BITS = 4, GOMPI_WARM_UP = 256 };

struct gompi_counters {
	int64_t begun, left;
	uint64_t uncounted, moved;
	int64_t peer, tag;
	uint64_t next, peers, events;
	uint64_t seed;
	int64_t clock;
	uint64_t rest[5];
};

struct gompi_site {
	uint64_t key, calls, bytes, timed;
	int64_t time, fastest, slowest;
	uint64_t is_short, rest, named;
	char op[32], place[80];
};

struct gompi_sent {
	uint64_t messages, bytes;
};

struct gompi_event {
	uint64_t stamp;
	int64_t begin, duration;
	int32_t site, peer, tag, rest;
	uint64_t bytes;
};

/* What a rank gets: its area, which begins with the counters, and the ranks in the job by local rank. */
struct gompi_stats {
	struct gompi_counters *counters; /* NULL if nothing was counted yet */
	const int32_t *worlds;
};

#define GOMPI_STATS_LAYOUT { \
	offsetof(struct gompi_counters, uncounted), offsetof(struct gompi_counters, moved), offsetof(struct gompi_counters, peer), \
	offsetof(struct gompi_counters, next), offsetof(struct gompi_counters, events), offsetof(struct gompi_counters, seed), sizeof(struct gompi_counters), \
	sizeof(struct gompi_site), offsetof(struct gompi_site, timed), offsetof(struct gompi_site, is_short), \
	offsetof(struct gompi_site, named), offsetof(struct gompi_site, op), offsetof(struct gompi_site, place), \
	sizeof(struct gompi_event), offsetof(struct gompi_event, site), offsetof(struct gompi_event, bytes), \
	GOMPI_SITES, GOMPI_SPARE_SITES, GOMPI_PROBES, GOMPI_SHORT_CALL, 1 << GOMPI_SAMPLED_BITS, GOMPI_WARM_UP }

#endif
