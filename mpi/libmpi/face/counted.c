/* What package stats does in Go, for calls of MPI: rank.go has the same functions. */
#define _GNU_SOURCE
#include "face.h"
#include "counted.h"
#include "counters.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct gompi_stats gompi_stats;
bool gompi_counting;
__thread struct gompi_moves gompi_moves;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool joined; /* the job: Go can be asked */
static int tools;   /* variables that they have started */

/* CPython's functions, where it is in this process; PyFrame_GetCode came last, in 3.9. */
extern __attribute__((weak)) int Py_IsInitialized(void), PyGILState_Check(void), PyGILState_Ensure(void), PyFrame_GetLineNumber(void *);
extern __attribute__((weak)) void PyGILState_Release(int), Py_DecRef(void *), PyErr_Clear(void);
extern __attribute__((weak)) void *PyGILState_GetThisThreadState(void), *PyEval_GetFrame(void), *PyFrame_GetCode(void *);
extern __attribute__((weak)) void *PyObject_GetAttrString(void *, const char *);
extern __attribute__((weak)) const char *PyUnicode_AsUTF8(void *);

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static struct gompi_site *sites(void) { return (struct gompi_site *)(gompi_stats.counters + 1); }

static struct gompi_sent *sent(void) { return (struct gompi_sent *)(sites() + GOMPI_STATS_SITES); }

static struct gompi_event *events(void) { return (struct gompi_event *)(sent() + gompi_stats.counters->peers); }

/* Rank.name. line is NULL or a line of Python. */
static void rank_name(struct gompi_site *s, const char *name, const void *caller, const char *line)
{
	Dl_info at;
	strncpy(s->op, name, sizeof s->op - 1); /* the memory is zero */
	if (line) {
		strcpy(s->place, line);
	} else if (!caller) {
		strcpy(s->place, "elsewhere");
	} else if (dladdr(caller, &at) && at.dli_fname) {
		const char *file = strrchr(at.dli_fname, '/'), *of = file ? file + 1 : at.dli_fname;
		const void *from = at.dli_fbase;
		if (at.dli_sname && strstr(of, ".so")) { /* of the program itself the agent knows more */
			of = at.dli_sname;
			from = at.dli_saddr;
		}
		snprintf(s->place, sizeof s->place, "%s+0x%lx", of, (unsigned long)((const char *)caller - (const char *)from));
		__atomic_store_n(&s->of_python, strstr(at.dli_fname, "/mpi4py/MPI.") && PyFrame_GetCode, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&s->named, 1, __ATOMIC_RELEASE);
}

/* Rank.at: it returns the site at a place of the table, if that has a key or can have it. */
static struct gompi_site *rank_at(uint64_t key, uint64_t i, const char *name, const void *caller, const char *line)
{
	struct gompi_site *s = &sites()[i];
	uint64_t was = __atomic_load_n(&s->key, __ATOMIC_RELAXED);
	if (was == key)
		return s;
	if (!was && __atomic_compare_exchange_n(&s->key, &was, key, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		rank_name(s, name, caller, line);
		return s;
	}
	return was == key ? s : NULL; /* another thread's, just now */
}

/* Rank.find, with home. place is the place's part of the key. */
static struct gompi_site *rank_find(const char *name, uint64_t place, const void *caller, const char *line)
{
	uint64_t of_name = (uint64_t)(uintptr_t)name * GOMPI_STATS_ODD, key = ((of_name ^ place) * GOMPI_STATS_ODD) | 1;
	uint64_t home = (key >> 40) * (GOMPI_STATS_SITES - GOMPI_STATS_SPARE) >> 24;
	struct gompi_site *s;
	for (uint64_t i = 0; i < GOMPI_STATS_PROBES; i++)
		if ((s = rank_at(key, (home + i) % (GOMPI_STATS_SITES - GOMPI_STATS_SPARE), name, caller, line)))
			return s;
	for (uint64_t i = 0; i < GOMPI_STATS_PROBES; i++)
		if ((s = rank_at(of_name | 1, GOMPI_STATS_SITES - GOMPI_STATS_SPARE + ((of_name >> 40) + i) % GOMPI_STATS_SPARE, name, NULL, NULL)))
			return s;
	return NULL;
}

/* rank_line returns the site of a line in Python, "src/train.py:31". */
static struct gompi_site *rank_line(const char *name, const char *file, int number)
{
	char line[sizeof(((struct gompi_site *)0)->place)];
	const char *end = file + strlen(file), *from = end;
	uint64_t hash = 0;
	for (int slashes = 0; from > file && end - from < 64 && (from[-1] != '/' || !slashes++); from--)
		hash = (hash ^ (uint64_t)from[-1]) * GOMPI_STATS_ODD;
	snprintf(line, sizeof line, "%s:%d", from, number);
	return rank_find(name, hash ^ (uint64_t)number, NULL, line);
}

static void enter(struct gompi_span *span, int64_t at)
{
	struct gompi_counters *c = gompi_stats.counters;
	span->begin = at;
	__atomic_store_n(&c->latest, span->site - sites(), __ATOMIC_RELAXED);
	counters_enter(c, at);
}

/* Rank.Begin */
void gompi_span_begin(struct gompi_span *span, const char *name, const void *caller)
{
	struct gompi_counters *c = gompi_stats.counters;
	struct gompi_site *s = rank_find(name, (uint64_t)(uintptr_t)caller, caller, NULL);
	if (!s) {
		__atomic_fetch_add(&c->uncounted, 1, __ATOMIC_RELAXED);
		return;
	}
	uint64_t n = __atomic_add_fetch(&s->calls, 1, __ATOMIC_RELAXED);
	gompi_moves.peer = gompi_moves.tag = -1;
	span->site = s;
	span->moved = gompi_moves.bytes;
	span->stands = 1;
	if (__atomic_load_n(&s->is_short, __ATOMIC_RELAXED)) {
		if ((n + c->seed) * GOMPI_STATS_ODD >> (64 - GOMPI_STATS_SAMPLED_BITS))
			return;
		span->stands = GOMPI_STATS_SAMPLED;
	}
	enter(span, now());
}

/* gompi_span_waits begins to time a call of those that are not. */
void gompi_span_waits(struct gompi_span *span)
{
	span->stands = 0;
	enter(span, now());
}

/* Rank.write: it writes the call to the ring. */
static void rank_write(const struct gompi_span *span, int64_t took, uint64_t bytes)
{
	struct gompi_counters *c = gompi_stats.counters;
	uint64_t n = __atomic_fetch_add(&c->next, 1, __ATOMIC_RELAXED);
	struct gompi_event *e = &events()[n % c->events];
	__atomic_store_n(&e->stamp, 0, __ATOMIC_SEQ_CST);
	e->begin = span->begin;
	e->duration = took;
	e->site = (int32_t)(span->site - sites());
	e->peer = (int32_t)gompi_moves.peer;
	e->tag = (int32_t)gompi_moves.tag;
	e->bytes = bytes;
	__atomic_store_n(&e->stamp, n + 1, __ATOMIC_SEQ_CST);
}

/* at_line moves a call of mpi4py's to the site of its line in Python. The site where it began stays without times: each
 * call is timed. mpi4py has let go of Python's lock and takes it next: a wait for it at the call's end is no new one. (At
 * the begin another thread may hold it until this call has been made.) PyGILState_Check is true where the thread has the
 * lock, and wherever it is better left alone: with sub-interpreters, and after Python's end. */
static void at_line(struct gompi_span *span)
{
	if (PyGILState_Check() || !PyGILState_GetThisThreadState() || !Py_IsInitialized())
		return;
	struct gompi_moves moves = gompi_moves;
	int state = PyGILState_Ensure();
	void *frame = PyEval_GetFrame(), *code = frame ? PyFrame_GetCode(frame) : NULL;
	void *file = code ? PyObject_GetAttrString(code, "co_filename") : NULL;
	const char *name = file ? PyUnicode_AsUTF8(file) : NULL;
	struct gompi_site *s = name ? rank_line(span->site->op, name, PyFrame_GetLineNumber(frame)) : NULL;
	if (!name)
		PyErr_Clear();
	Py_DecRef(file);
	Py_DecRef(code);
	PyGILState_Release(state);
	gompi_moves = moves; /* Python may have collected garbage, and so called MPI_Comm_free */
	if (s) {
		__atomic_fetch_add(&s->calls, 1, __ATOMIC_RELAXED);
		__atomic_fetch_sub(&span->site->calls, 1, __ATOMIC_RELAXED);
		span->site = s;
	}
}

/* Span.End, with took of site */
void gompi_span_end(struct gompi_span *span)
{
	struct gompi_counters *c = gompi_stats.counters;
	int64_t took = 0;
	if (span->begin) {
		int64_t at = now();
		if ((took = at - span->begin - c->clock) < 0)
			took = 0;
		if (took > GOMPI_STATS_LONG) /* something held this one up, not those that it stands for */
			span->stands = 1;
		counters_exit(c, span->begin, at, span->stands - 1);
	}
	if (__builtin_expect(__atomic_load_n(&span->site->of_python, __ATOMIC_ACQUIRE), 0))
		at_line(span);
	struct gompi_site *s = span->site;
	uint64_t bytes = gompi_moves.bytes - span->moved;
	if (bytes)
		__atomic_fetch_add(&s->bytes, bytes, __ATOMIC_RELAXED);
	if (!span->begin || !span->stands)
		return;
	uint64_t calls = __atomic_load_n(&s->calls, __ATOMIC_RELAXED);
	__atomic_fetch_add(&s->timed, 1, __ATOMIC_RELAXED);
	int64_t total = __atomic_add_fetch(&s->time, took * span->stands, __ATOMIC_RELAXED);
	if (!s->fastest || took < s->fastest - 1)
		__atomic_store_n(&s->fastest, took + 1, __ATOMIC_RELAXED);
	if (took > s->slowest)
		__atomic_store_n(&s->slowest, took, __ATOMIC_RELAXED);
	if (c->events)
		rank_write(span, took, bytes);
	else if (calls > GOMPI_STATS_WARM_UP)
		__atomic_store_n(&s->is_short, total < (int64_t)calls * GOMPI_STATS_SHORT, __ATOMIC_RELAXED);
}

/* gompi_count counts bytes that Go has moved, or a message, at the call that this thread is in. */
void gompi_count(int64_t bytes, int64_t peer, int64_t tag)
{
	gompi_moves.bytes += (uint64_t)bytes;
	if (peer >= 0) {
		gompi_moves.peer = peer;
		gompi_moves.tag = tag;
	}
}

static uint64_t note(int local, int tag, uint64_t bytes)
{
	int64_t world = gompi_stats.worlds[local];
	__atomic_fetch_add(&gompi_stats.counters->moved, bytes, __ATOMIC_RELAXED);
	gompi_count((int64_t)bytes, world, tag);
	return (uint64_t)world;
}

/* Rank.Sent and Received: gompi_count_sent counts a message to a local rank, gompi_count_received one that has come. */
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
	for (int i = 0; i < GOMPI_STATS_SITES; i++) {
		t.calls += __atomic_load_n(&sites()[i].calls, __ATOMIC_RELAXED);
		t.time += (uint64_t)__atomic_load_n(&sites()[i].time, __ATOMIC_RELAXED);
	}
	for (uint64_t i = 0; i < c->peers; i++)
		t.sent += __atomic_load_n(&sent()[i].bytes, __ATOMIC_RELAXED);
	return t;
}
