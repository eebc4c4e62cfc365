/* Steps of short collectives in shared memory. Functions have the names of their brothers in Go, methods of Team of
 * package shmsync. */
#ifndef GOMPI_FACE_STEPS_H
#define GOMPI_FACE_STEPS_H
#include "../shared.h"
#include "lines.h"

/* Team.head: of a step, which all members fill. */
static inline struct gompi_head *team_head(const struct gompi_team *t, int member, uint64_t step)
{
	return &t->blocks[member]->heads[step % GOMPI_BLOCK_DEPTH];
}

/* Team.Lay and ring.lay: the place of the payload of a step, of so many bytes. It returns the step that all must
 * have read before it is filled. */
static inline uint64_t team_lay(struct gompi_team *t, uint64_t step, uint64_t bytes, bool exchange)
{
	uint64_t after = step - lower(step, GOMPI_BLOCK_DEPTH);
	uint64_t length = (bytes + GOMPI_BLOCK_LINE_SIZE - 1) & ~(uint64_t)(GOMPI_BLOCK_LINE_SIZE - 1);
	t->place = t->exchanged = 0;
	if (bytes <= GOMPI_BLOCK_IN_HEAD)
		return after;
	struct gompi_bounce *g = t->ring = t->rings[bytes > GOMPI_BLOCK_SMALL_MOST];
	t->next_before = g->next;
	t->n_before = g->n;
	if (g->size - g->next % g->size < length)
		g->next += g->size - g->next % g->size;
	if (exchange)
		t->exchanged = g->next / g->size & g->turn;
	t->place = (uint64_t)g->at + g->next % g->size;
	g->held[g->n % GOMPI_BLOCK_DEPTH].step = step;
	g->held[g->n % GOMPI_BLOCK_DEPTH].start = g->next;
	g->n++;
	g->next += length;
	while (g->out < g->n - 1 && (g->held[g->out % GOMPI_BLOCK_DEPTH].start + g->size < g->next || g->out + GOMPI_BLOCK_DEPTH <= g->n))
		g->gone = g->held[g->out++ % GOMPI_BLOCK_DEPTH].step;
	return upper(after, g->gone);
}

/* team_lift undoes team_lay. What is gone stays so: the same is laid again. */
static inline void team_lift(struct gompi_team *t)
{
	if (t->place) {
		t->ring->next = t->next_before;
		t->ring->n = t->n_before;
	}
}

/* Team.Payload: what a member gives in the last step. */
static inline uint8_t *team_payload(const struct gompi_team *t, int member)
{
	return t->place ? (uint8_t *)t->blocks[member ^ (int)t->exchanged] + t->place : team_head(t, member, t->step)->payload;
}

/* Team.Block */
static inline int64_t team_block(const struct gompi_team *t, int member) { return member ^ (int64_t)t->exchanged; }

/* EncodedCall.Digest */
static inline uint64_t encoded_call_digest(uint64_t before, const uint64_t call[2])
{
	return ((before ^ call[0]) * GOMPI_DIGEST_FACTOR ^ call[1]) * GOMPI_DIGEST_FACTOR;
}

#endif
