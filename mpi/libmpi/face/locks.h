/* The lock of a part of a window. Functions have the names of their brothers in Go, methods of Control of package lease. */
#ifndef GOMPI_FACE_LOCKS_H
#define GOMPI_FACE_LOCKS_H
#include "../shared.h"

/* Control.Arrive, if MayBegin would report true for the ticket. */
static inline bool control_arrive(struct gompi_window_control *c, int how)
{
	uint32_t turn = __atomic_load_n(how == GOMPI_HOLD_FOR_WRITING ? &c->ended : &c->begun, __ATOMIC_SEQ_CST);
	return __atomic_compare_exchange_n(&c->tickets, &turn, turn + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* Control.Begin */
static inline void control_begin(struct gompi_window_control *c, int how)
{
	if (how != GOMPI_HOLD_FOR_WRITING)
		__atomic_fetch_add(&c->begun, 1, __ATOMIC_SEQ_CST);
}

/* Control.End */
static inline void control_end(struct gompi_window_control *c, int how)
{
	if (how == GOMPI_HOLD_FOR_WRITING)
		__atomic_fetch_add(&c->begun, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&c->ended, 1, __ATOMIC_SEQ_CST);
}

#endif
