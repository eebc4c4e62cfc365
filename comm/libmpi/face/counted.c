/* What package stats does in Go, for calls of MPI: rank.go has the same functions. */
#define _GNU_SOURCE
#include "face.h"
#include "counted.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct gompi_stats gompi_stats;
bool gompi_counting;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool joined; /* the job: Go can be asked */
static int tools;   /* variables that they have started */

static const uint64_t odd = 0x9e3779b97f4a7c15;

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static struct gompi_site *sites(void) { return (struct gompi_site *)(gompi_stats.counters + 1); }

static struct gompi_sent *sent(void) { return (struct gompi_sent *)(sites() + GOMPI_SITES); }

static struct gompi_event *events(void) { return (struct gompi_event *)(sent() + gompi_stats.counters->peers); }

static void name_site(struct gompi_site *s, const char *name, const void *caller)
{
	Dl_info at;
	strncpy(s->op, name, sizeof s->op - 1); /* the memory is zero */
	if (!caller) {
		strcpy(s->place, "elsewhere");
	} else if (dladdr(caller, &at) && at.dli_fname) {
		const char *file = strrchr(at.dli_fname, '/'), *of = file ? file + 1 : at.dli_fname;
		const void *from = at.dli_fbase;
		if (at.dli_sname && strstr(of, ".so")) { /* of the program itself the agent knows more */
			of = at.dli_sname;
			from = at.dli_saddr;
		}
		snprintf(s->place, sizeof s->place, "%s+0x%lx", of, (unsigned long)((const char *)caller - (const char *)from));
	}
	__atomic_store_n(&s->named, 1, __ATOMIC_RELEASE);
}

/* site_at returns the site at a place of the table, if that has a key or can have it. */
static struct gompi_site *site_at(uint64_t key, uint64_t i, const char *name, const void *caller)
{
	struct gompi_site *s = &sites()[i];
	uint64_t was = __atomic_load_n(&s->key, __ATOMIC_RELAXED);
	if (was == key)
		return s;
	if (!was && __atomic_compare_exchange_n(&s->key, &was, key, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		name_site(s, name, caller);
		return s;
	}
	return was == key ? s : NULL; /* another thread's, just now */
}

static struct gompi_site *find(const char *name, const void *caller)
{
	uint64_t of_name = (uint64_t)(uintptr_t)name * odd, key = ((of_name ^ (uint64_t)(uintptr_t)caller) * odd) | 1;
	struct gompi_site *s;
	for (uint64_t i = 0; i < GOMPI_PROBES; i++)
		if ((s = site_at(key, ((key >> 40) + i) % (GOMPI_SITES - GOMPI_SPARE_SITES), name, caller)))
			return s;
	for (uint64_t i = 0; i < GOMPI_PROBES; i++)
		if ((s = site_at(of_name | 1, GOMPI_SITES - GOMPI_SPARE_SITES + ((of_name >> 40) + i) % GOMPI_SPARE_SITES, name, NULL)))
			return s;
	return NULL;
}

void gompi_span_begin(struct gompi_span *span, const char *name, const void *caller)
{
	struct gompi_counters *c = gompi_stats.counters;
	struct gompi_site *s = find(name, caller);
	if (!s) {
		__atomic_fetch_add(&c->uncounted, 1, __ATOMIC_RELAXED);
		return;
	}
	uint64_t n = __atomic_add_fetch(&s->calls, 1, __ATOMIC_RELAXED);
	if (c->events)
		__atomic_store_n(&c->peer, -1, __ATOMIC_RELAXED);
	span->site = s;
	span->moved = __atomic_load_n(&c->moved, __ATOMIC_RELAXED);
	span->stands = 1;
	if (__atomic_load_n(&s->is_short, __ATOMIC_RELAXED)) {
		if ((n + c->seed) * odd >> (64 - GOMPI_SAMPLED_BITS))
			return;
		span->stands = 1 << GOMPI_SAMPLED_BITS;
	}
	span->begin = now();
}

/* write_event writes the call to the ring. */
static void write_event(const struct gompi_span *span, int64_t took, uint64_t bytes)
{
	struct gompi_counters *c = gompi_stats.counters;
	uint64_t n = __atomic_fetch_add(&c->next, 1, __ATOMIC_RELAXED);
	struct gompi_event *e = &events()[n % c->events];
	__atomic_store_n(&e->stamp, 0, __ATOMIC_SEQ_CST);
	e->begin = span->begin;
	e->duration = took;
	e->site = (int32_t)(span->site - sites());
	e->peer = (int32_t)c->peer;
	e->tag = (int32_t)c->tag;
	e->bytes = bytes;
	__atomic_store_n(&e->stamp, n + 1, __ATOMIC_SEQ_CST);
}

/* gompi_span_end ends a call. */
void gompi_span_end(struct gompi_span *span)
{
	struct gompi_counters *c = gompi_stats.counters;
	struct gompi_site *s = span->site;
	uint64_t bytes = __atomic_load_n(&c->moved, __ATOMIC_RELAXED) - span->moved;
	if (bytes)
		__atomic_fetch_add(&s->bytes, bytes, __ATOMIC_RELAXED);
	if (!span->begin)
		return;
	int64_t took = now() - span->begin - c->clock;
	if (took < 0)
		took = 0;
	if (took > (int64_t)GOMPI_WARM_UP * GOMPI_SHORT_CALL) /* something held this one up, not those that it stands for */
		span->stands = 1;
	uint64_t calls = __atomic_load_n(&s->calls, __ATOMIC_RELAXED);
	__atomic_fetch_add(&s->timed, 1, __ATOMIC_RELAXED);
	int64_t total = __atomic_add_fetch(&s->time, took * span->stands, __ATOMIC_RELAXED);
	if (!s->fastest || took < s->fastest - 1)
		__atomic_store_n(&s->fastest, took + 1, __ATOMIC_RELAXED);
	if (took > s->slowest)
		__atomic_store_n(&s->slowest, took, __ATOMIC_RELAXED);
	if (c->events)
		write_event(span, took, bytes);
	else if (calls > GOMPI_WARM_UP)
		__atomic_store_n(&s->is_short, total < (int64_t)calls * GOMPI_SHORT_CALL, __ATOMIC_RELAXED);
}

static uint64_t note(int local, int tag, uint64_t bytes)
{
	struct gompi_counters *c = gompi_stats.counters;
	int64_t world = gompi_stats.worlds[local];
	__atomic_store_n(&c->peer, world, __ATOMIC_RELAXED);
	__atomic_store_n(&c->tag, tag, __ATOMIC_RELAXED);
	__atomic_fetch_add(&c->moved, bytes, __ATOMIC_RELAXED);
	return (uint64_t)world;
}

/* gompi_count_sent counts a message to a local rank, gompi_count_received one that has come. */
void gompi_count_sent(int local, int tag, uint64_t bytes)
{
	uint64_t to = note(local, tag, bytes);
	if (to < gompi_stats.counters->peers) {
		__atomic_fetch_add(&sent()[to].messages, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&sent()[to].bytes, bytes, __ATOMIC_RELAXED);
	}
}

void gompi_count_received(int local, int tag, uint64_t bytes) { note(local, tag, bytes); }

/* ---- Tools ---- */

/* turn turns counting on if somebody wants it. gompi_stats is there before, and stays. */
static void turn(void)
{
	struct gompi_stats s = {0};
	if (!joined)
		return;
	bool on = gompi_core.stats(tools > 0, &s);
	if (on && !gompi_stats.counters)
		gompi_stats = s;
	__atomic_store_n(&gompi_counting, on, __ATOMIC_RELEASE);
}

/* gompi_count_from_now is called when the job was joined. */
void gompi_count_from_now(void)
{
	pthread_mutex_lock(&lock);
	joined = true;
	turn();
	pthread_mutex_unlock(&lock);
}

/* gompi_count_for is called when a tool has started more variables, or fewer. */
void gompi_count_for(int more)
{
	pthread_mutex_lock(&lock);
	tools += more;
	if (tools == 0 || tools == more)
		turn();
	pthread_mutex_unlock(&lock);
}

struct gompi_totals gompi_count_totals(void)
{
	pthread_mutex_lock(&lock);
	struct gompi_counters *c = gompi_stats.counters;
	pthread_mutex_unlock(&lock);
	struct gompi_totals t = {0};
	if (!c)
		return t;
	t.calls = __atomic_load_n(&c->uncounted, __ATOMIC_RELAXED);
	t.bytes = __atomic_load_n(&c->moved, __ATOMIC_RELAXED);
	for (int i = 0; i < GOMPI_SITES; i++) {
		t.calls += __atomic_load_n(&sites()[i].calls, __ATOMIC_RELAXED);
		t.time += (uint64_t)__atomic_load_n(&sites()[i].time, __ATOMIC_RELAXED);
	}
	for (uint64_t i = 0; i < c->peers; i++)
		t.sent += __atomic_load_n(&sent()[i].bytes, __ATOMIC_RELAXED);
	return t;
}
