/* The flight recorder. Functions have the names of their brothers in Go, methods of Recorder of package seg. */
#ifndef GOMPI_FACE_RECORDER_H
#define GOMPI_FACE_RECORDER_H
#include "../shared.h"

/* Recorder.take: the next ticket and its record, NULL if that is busy. Each turn has a later ticket. */
static inline struct gompi_record *recorder_take(struct gompi_record *ring, uint64_t *next, uint64_t *ticket)
{
	uint64_t t = __atomic_load_n(next, __ATOMIC_RELAXED);
	for (;;) {
		struct gompi_record *r = &ring[t % GOMPI_RECORDED];
		uint64_t old = __atomic_load_n(&r->stamp, __ATOMIC_RELAXED);
		if (old >> 2 >= t) {
			t = (old >> 2) + 1;
		} else if ((old & 3) == GOMPI_RECORD_BUSY) {
			__atomic_store_n(next, t + 1, __ATOMIC_RELAXED);
			return NULL;
		} else if (__atomic_compare_exchange_n(&r->stamp, &old, t << 2 | GOMPI_RECORD_BUSY, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			__atomic_store_n(next, t + 1, __ATOMIC_RELAXED);
			*ticket = t;
			return r;
		}
	}
}

/* Recorder.begin, of a team's last call, as one that is over: one that is undone Go records again. */
static inline void recorder_begin(const struct gompi_team *t, int64_t bytes)
{
	uint64_t ticket;
	struct gompi_record *r = t->recorder ? recorder_take(t->recorder, t->next, &ticket) : NULL;
	if (!r)
		return;
	__atomic_store_n(&r->comm, t->comm, __ATOMIC_RELEASE); /* each behind the stamp: the reader is another process */
	__atomic_store_n(&r->what, t->call[0], __ATOMIC_RELEASE);
	__atomic_store_n(&r->count, t->call[1], __ATOMIC_RELEASE);
	__atomic_store_n(&r->bytes, (uint64_t)bytes, __ATOMIC_RELEASE);
	__atomic_store_n(&r->start, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&r->seq, t->seq, __ATOMIC_RELEASE);
	__atomic_store_n(&r->stamp, ticket << 2 | GOMPI_RECORD_DONE, __ATOMIC_RELEASE);
}

#endif
