/* What a message is sent from or received into: runs of bytes, as elements of vectors are. */
#ifndef GOMPI_FACE_RUNS_H
#define GOMPI_FACE_RUNS_H
#include <stdint.h>
#include <string.h>

/* bytes in runs of as many, stride apart, the first at at. run is bytes if they are one. */
struct runs {
	uint8_t *at;
	int64_t bytes, run, stride;
};

static inline __attribute__((always_inline)) void gather(uint8_t *to, const struct runs *m, size_t run)
{
	const uint8_t *from = m->at;
	for (uint8_t *end = to + m->bytes; to < end; to += run, from += m->stride)
		memcpy(to, from, run);
}

static inline __attribute__((always_inline)) void scatter(const struct runs *m, const uint8_t *from, int64_t n, size_t run)
{
	uint8_t *to = m->at;
	for (; n >= (int64_t)run; n -= (int64_t)run, from += run, to += m->stride)
		memcpy(to, from, run);
	memcpy(to, from, (size_t)n);
}

/* pack copies all to one run. Copies of as many bytes as the compiler knows are no calls. */
static inline void pack(uint8_t *to, const struct runs *m)
{
	if (m->run == m->bytes)
		memcpy(to, m->at, (size_t)m->bytes);
	else if (m->run == 8)
		gather(to, m, 8);
	else if (m->run == 4)
		gather(to, m, 4);
	else
		gather(to, m, (size_t)m->run);
}

/* unpack copies the first n bytes from one run. */
static inline void unpack(const struct runs *m, const uint8_t *from, int64_t n)
{
	if (m->run == m->bytes)
		memcpy(m->at, from, (size_t)n);
	else if (m->run == 8)
		scatter(m, from, n, 8);
	else if (m->run == 4)
		scatter(m, from, n, 4);
	else
		scatter(m, from, n, (size_t)m->run);
}

#endif
