/* One-sided operations on memory that this process has, too, without entering Go: see struct gompi_window
 * of package lease. They do what PutRun, GetRun, FetchAndOp, CompareAndSwap, Flush and Lock of package rma do,
 * with the same instructions on the same words. What they do not do, they have not begun: wrong arguments,
 * elements that are not one run, other memory, locks that are not free, and windows that are broken.
 *
 * Order in memory: a put is plain stores, a get plain loads. Accumulates, a flush and the words of locks are
 * sequentially consistent, as in Go. So what was put before a flush is seen by whoever sees what is put or
 * accumulated after it, or what this thread sends then; and who holds a lock sees what was put under it before:
 * the word that gives it back is stored behind, and loaded before the lock is taken. */
#include <string.h>
#include "locks.h"
#include "short.h"

typedef uint64_t word64 __attribute__((aligned(1), may_alias));
typedef uint32_t word32 __attribute__((aligned(1), may_alias));

static inline struct gompi_window *window_of(MPI_Win win)
{
	gompi_word slot = IN_win(win) - GOMPI_FIRST_HANDLE;
	if (!gompi_lease || slot < 0 || slot >= GOMPI_LEASE_WINDOWS || gompi_tossed(gompi_lease))
		return NULL;
	return __atomic_load_n(&gompi_lease->windows[slot], __ATOMIC_ACQUIRE);
}

/* A target is memory of a rank, NULL if Go is to access it. */
struct target {
	uint8_t *at;
	bool shared; /* so that accumulates are instructions */
};

/* Window.reaches: it returns n bytes at an offset, which the epoch lets this rank access. */
static inline struct target window_reaches(MPI_Win win, int rank, MPI_Aint offset, int64_t n)
{
	const struct gompi_window *w = n > 0 ? window_of(win) : NULL;
	int64_t at;
	if (!w || rank < 0 || rank >= w->ranks)
		return (struct target){NULL, false};
	const struct gompi_part *p = &w->parts[rank];
	if (!p->direct || !(w->fenced || w->all || p->locked || p->started) || offset < 0 ||
	    __builtin_mul_overflow((int64_t)offset, p->unit, &at) || n > p->size - at)
		return (struct target){NULL, false};
	return (struct target){p->here + at, p->shared};
}

/* same returns how long elements are here and there, -1 if Go is to find that out. */
static inline int64_t same(const void *buf, int count, MPI_Datatype type, int there, MPI_Datatype typethere)
{
	if (!gompi_lease)
		return -1;
	int64_t n = gompi_bytes_of(buf, count, type);
	return (count == there && type == typethere) || gompi_bytes_of(buf, there, typethere) == n ? n : -1;
}

/* store and load of package rma: n bytes, a word in one piece. */
static inline void move(void *to, const void *from, int64_t n)
{
	if (n == 8)
		*(volatile word64 *)to = *(const volatile word64 *)from;
	else if (n == 4)
		*(volatile word32 *)to = *(const volatile word32 *)from;
	else
		memmove(to, from, (size_t)n);
}

/* Window.PutRun */
int gompi_short_put(const void *buf, int count, MPI_Datatype type, int rank, MPI_Aint offset, int there, MPI_Datatype typethere, MPI_Win win)
{
	int64_t n = same(buf, count, type, there, typethere);
	struct target t = window_reaches(win, rank, offset, n);
	if (!t.at)
		return 0;
	move(t.at, buf, n);
	return 1;
}

/* Window.GetRun */
int gompi_short_get(void *buf, int count, MPI_Datatype type, int rank, MPI_Aint offset, int there, MPI_Datatype typethere, MPI_Win win)
{
	int64_t n = same(buf, count, type, there, typethere);
	struct target t = window_reaches(win, rank, offset, n);
	if (!t.at)
		return 0;
	move(buf, t.at, n);
	return 1;
}

/* ---- Accumulates ---- */

/* An accumulation is how elements are combined: by words of so many bytes, 0 if Go does it. */
struct accumulation {
	int type, op; /* as calls are compared, op with the two below besides */
	int word;
};
enum { REPLACE = GOMPI_LEASE_OPERATORS, FETCH };

static inline struct accumulation accumulation_of(MPI_Datatype type, MPI_Op op)
{
	gompi_word id = IN_datatype(type), operator = IN_op(op);
	struct accumulation a = {0, 0, 0};
	if (!gompi_lease || id < 0 || id >= GOMPI_LEASE_SIZES || operator < 0 || operator >= GOMPI_LEASE_OPERATORS)
		return a;
	a.type = gompi_lease->elements[id];
	a.op = operator == GOMPI_ID_OP_REPLACE ? REPLACE : operator == GOMPI_ID_OP_NOTHING ? FETCH : gompi_lease->operators[operator];
	switch (a.type) {
	case GOMPI_TYPE_I32:
	case GOMPI_TYPE_F32: a.word = 4; break;
	case GOMPI_TYPE_I64:
	case GOMPI_TYPE_F64: a.word = 8; break;
	case GOMPI_TYPE_U32: a.word = a.op == GOMPI_OP_SUM || a.op >= REPLACE ? 4 : 0; break;
	case GOMPI_TYPE_U64: a.word = a.op == GOMPI_OP_SUM || a.op >= REPLACE ? 8 : 0; break;
	}
	if (!a.op)
		a.word = 0;
	return a;
}

/* combineWords of package rma, of one word: x, which for FETCH means nothing. It returns the old word. */
#define COMBINE_WORD(bits) \
	static inline uint##bits##_t combine_word##bits(uint##bits##_t *at, uint##bits##_t x, struct accumulation a) \
	{ \
		if (a.op == FETCH) \
			return __atomic_load_n(at, __ATOMIC_SEQ_CST); \
		if (a.op == REPLACE) \
			return __atomic_exchange_n(at, x, __ATOMIC_SEQ_CST); \
		if (a.op == GOMPI_OP_SUM && a.type != GOMPI_TYPE_F32 && a.type != GOMPI_TYPE_F64) \
			return __atomic_fetch_add(at, x, __ATOMIC_SEQ_CST); \
		uint##bits##_t old = __atomic_load_n(at, __ATOMIC_SEQ_CST), sum; \
		do \
			gompi_combine_here(a.type, a.op, &sum, &old, &x, 1); \
		while (!__atomic_compare_exchange_n(at, &old, sum, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)); \
		return old; \
	}
COMBINE_WORD(32)
COMBINE_WORD(64)

/* Window.combineRun, of n bytes at a target. in and out may be NULL or unaligned. Inline, so that one word needs no loop. */
static inline __attribute__((always_inline)) int window_combine_run(struct target t, const void *in, void *out, int64_t n, struct accumulation a)
{
	if (!t.at || !t.shared || (uintptr_t)t.at % (unsigned)a.word)
		return 0;
	for (int64_t i = 0; i < n; i += a.word) {
		if (a.word == 8) {
			uint64_t old = combine_word64((uint64_t *)(t.at + i), in ? *(const word64 *)((const uint8_t *)in + i) : 0, a);
			if (out)
				*(word64 *)((uint8_t *)out + i) = old;
		} else {
			uint32_t old = combine_word32((uint32_t *)(t.at + i), in ? *(const word32 *)((const uint8_t *)in + i) : 0, a);
			if (out)
				*(word32 *)((uint8_t *)out + i) = old;
		}
	}
	return 1;
}

int gompi_short_accumulate(const void *buf, int count, MPI_Datatype type, int rank, MPI_Aint offset, int there, MPI_Datatype typethere,
			   MPI_Op op, MPI_Win win)
{
	struct accumulation a = accumulation_of(type, op);
	if (!a.word || type != typethere || count != there || !buf || count <= 0)
		return 0;
	int64_t n = (int64_t)count * a.word;
	return window_combine_run(window_reaches(win, rank, offset, n), buf, NULL, n, a);
}

int gompi_short_get_accumulate(const void *buf, int count, MPI_Datatype type, void *result, int results, MPI_Datatype resulttype, int rank,
			       MPI_Aint offset, int there, MPI_Datatype typethere, MPI_Op op, MPI_Win win)
{
	struct accumulation a = accumulation_of(typethere, op);
	if (!a.word || resulttype != typethere || results != there || !result || there <= 0 ||
	    (a.op != FETCH && (type != typethere || count != there || !buf)))
		return 0;
	int64_t n = (int64_t)there * a.word;
	return window_combine_run(window_reaches(win, rank, offset, n), a.op == FETCH ? NULL : buf, result, n, a);
}

/* Window.FetchAndOp */
int gompi_short_fetch_and_op(const void *buf, void *result, MPI_Datatype type, int rank, MPI_Aint offset, MPI_Op op, MPI_Win win)
{
	struct accumulation a = accumulation_of(type, op);
	if (!a.word || !result || (a.op != FETCH && !buf))
		return 0;
	return window_combine_run(window_reaches(win, rank, offset, a.word), a.op == FETCH ? NULL : buf, result, a.word, a);
}

/* Window.CompareAndSwap */
int gompi_short_compare_and_swap(const void *buf, const void *compare, void *result, MPI_Datatype type, int rank, MPI_Aint offset, MPI_Win win)
{
	struct accumulation a = accumulation_of(type, MPI_REPLACE);
	if (!a.word || a.type == GOMPI_TYPE_F32 || a.type == GOMPI_TYPE_F64 || !buf || !compare || !result)
		return 0;
	struct target t = window_reaches(win, rank, offset, a.word);
	if (!t.at || !t.shared || (uintptr_t)t.at % (unsigned)a.word)
		return 0;
	if (a.word == 8) {
		uint64_t old = *(const word64 *)compare;
		__atomic_compare_exchange_n((uint64_t *)t.at, &old, *(const word64 *)buf, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		*(word64 *)result = old;
	} else {
		uint32_t old = *(const word32 *)compare;
		__atomic_compare_exchange_n((uint32_t *)t.at, &old, *(const word32 *)buf, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		*(word32 *)result = old;
	}
	return 1;
}

/* ---- Calls that synchronize ---- */

/* synchronizing is window_of for calls that Go makes now and then, as it polls in them, and all when the window is broken. */
static inline struct gompi_window *synchronizing(MPI_Win win)
{
	struct gompi_window *w = window_of(win);
	if (!w || !w->left || __atomic_load_n(w->broken, __ATOMIC_ACQUIRE))
		return NULL;
	w->left--;
	return w;
}

/* part_of returns the part of a rank that is reached directly, NULL if Go is to look. */
static inline struct gompi_part *part_of(struct gompi_window *w, int rank)
{
	return w && rank >= 0 && rank < w->ranks && w->parts[rank].direct ? &w->parts[rank] : NULL;
}

static inline void fence(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

/* Window.Flush */
int gompi_short_win_flush(int rank, MPI_Win win)
{
	struct gompi_window *w = synchronizing(win);
	struct gompi_part *p = part_of(w, rank);
	if (!p || !(w->all || p->locked))
		return 0;
	fence();
	return 1;
}

/* Window.FlushAll */
int gompi_short_win_flush_all(MPI_Win win)
{
	struct gompi_window *w = synchronizing(win);
	if (!w || !w->all || !w->all_direct)
		return 0;
	fence();
	return 1;
}

int gompi_short_win_sync(MPI_Win win)
{
	if (!synchronizing(win))
		return 0;
	fence();
	return 1;
}

/* Window.lock of package rma, if nobody waits for the part or holds a conflicting lock: the next ticket's turn has come. */
static bool window_lock(struct gompi_part *p, int how)
{
	if (p->held != GOMPI_HOLD_UNLOCKED || !control_arrive(p->control, how))
		return false;
	control_begin(p->control, how);
	p->held = (uint8_t)how;
	return true;
}

/* Window.unlock */
static void window_unlock(struct gompi_part *p)
{
	control_end(p->control, p->held);
	p->held = GOMPI_HOLD_UNLOCKED;
}

int gompi_short_win_lock(int type, int rank, int assertion, MPI_Win win)
{
	struct gompi_window *w = synchronizing(win);
	struct gompi_part *p = part_of(w, rank);
	if (!p || assertion || (type != MPI_LOCK_SHARED && type != MPI_LOCK_EXCLUSIVE) || !w->local || w->all || w->started ||
	    !window_lock(p, type == MPI_LOCK_SHARED ? GOMPI_HOLD_FOR_READING : GOMPI_HOLD_FOR_WRITING))
		return 0;
	w->fenced = 0;
	p->locked = 1;
	return 1;
}

int gompi_short_win_unlock(int rank, MPI_Win win)
{
	struct gompi_window *w = synchronizing(win);
	struct gompi_part *p = part_of(w, rank);
	if (!p || !p->locked || (p->held != GOMPI_HOLD_FOR_READING && p->held != GOMPI_HOLD_FOR_WRITING) || !w->local)
		return 0;
	p->locked = 0;
	window_unlock(p);
	return 1;
}

int gompi_short_win_lock_all(int assertion, MPI_Win win)
{
	struct gompi_window *w = synchronizing(win);
	if (!w || assertion || !w->local || !w->all_direct || w->all || w->started)
		return 0;
	for (int i = 0; i < w->ranks; i++) {
		if (window_lock(&w->parts[i], GOMPI_HOLD_FOR_READING))
			continue;
		while (--i >= 0) /* nothing was done under them */
			window_unlock(&w->parts[i]);
		return 0;
	}
	w->fenced = 0;
	w->all = 1;
	return 1;
}

int gompi_short_win_unlock_all(MPI_Win win)
{
	struct gompi_window *w = synchronizing(win);
	if (!w || !w->all || !w->all_direct || !w->local)
		return 0;
	for (int i = 0; i < w->ranks; i++)
		if (w->parts[i].held != GOMPI_HOLD_FOR_READING)
			return 0;
	w->all = 0;
	for (int i = 0; i < w->ranks; i++)
		window_unlock(&w->parts[i]);
	return 1;
}
