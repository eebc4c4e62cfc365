/* Short collectives without entering Go, while Go lends what they need: see Team of package lease. They do what
 * shmcoll/short.go does, in the same memory, and functions have the names of their brothers in Go. One that cannot
 * be finished at once is undone, and Go does it from its beginning. */
#include <string.h>
#include "recorder.h"
#include "reduce.h"
#include "short.h"
#include "steps.h"

typedef uint64_t wide __attribute__((vector_size(32), aligned(1), may_alias));

enum { GOMPI_WIDE = 4 * sizeof(wide) };

/* copy_wide is memcpy by plain loads and stores, in order: glibc's took longer for lines that come from, or go
 * to, another processor (np=2 near on an Intel Xeon, with what fill does: bcast of 1 KiB .69 us and .52,
 * allreduce of 2 KiB 1.15 and .97). */
WIDEST static void copy_wide(void *to, const void *from, int64_t n)
{
	for (; n >= GOMPI_WIDE; n -= GOMPI_WIDE, to = (wide *)to + 4, from = (const wide *)from + 4) {
		const wide *f = from;
		wide *t = to, a = f[0], b = f[1], c = f[2], d = f[3];
		t[0] = a;
		t[1] = b;
		t[2] = c;
		t[3] = d;
	}
	memcpy(to, from, (size_t)n);
}

static inline void copy(void *to, const void *from, int64_t n)
{
	if (n >= GOMPI_WIDE)
		copy_wide(to, from, n);
	else if (n)
		memcpy(to, from, (size_t)n);
}

/* Team.Room of package shmsync, and the copy to it: lines that others have read. */
static inline void team_room(uint8_t *to, const void *from, int64_t n)
{
	if (n > GOMPI_BLOCK_IN_HEAD)
		gompi_own(to, (uint64_t)n);
	copy(to, from, n);
}

/* take has C do a collective of so many bytes; NULL if Go does it. Of what C does, the kinds from reduce_scatter_block
 * on have a block for each rank, and bytes are those of a block. */
static struct gompi_team *take(gompi_word comm, int kind, int64_t bytes)
{
	struct gompi_lease *l = gompi_lease;
	int slot = gompi_slot_of(comm);
	if (!l || slot < 0 || slot >= GOMPI_LEASE_CHANNELS || bytes < 0 || bytes > GOMPI_LEASE_MOST_BYTES)
		return NULL;
	struct gompi_team *t = &l->teams[slot];
	uint32_t was = GOMPI_LEASE_LENT;
	if (gompi_tossed(l) || !__atomic_compare_exchange_n(&t->word, &was, GOMPI_LEASE_BUSY, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		if (was == GOMPI_LEASE_NONE)
			__atomic_store_n(&l->missed_team, slot + 1, __ATOMIC_RELEASE);
		return NULL;
	}
	gompi_inside_team = t;
	/* Receives that C holds become Go's in a collective, so that their messages come meanwhile. */
	if (bytes * (kind >= GOMPI_KIND_REDUCE_SCATTER_BLOCK ? t->size : 1) <= t->most[kind] && !__atomic_load_n(&t->broken, __ATOMIC_RELAXED) &&
	    !__atomic_load_n(&l->holds, __ATOMIC_RELAXED) && t->left) {
		t->left--;
		return t;
	}
	gompi_leave_team(t);
	return NULL;
}

/* Team.store: it stores a flag, and wakes the members that sleep for it. */
static inline void team_store(const struct gompi_team *t, uint64_t *flag, uint64_t value)
{
	__atomic_store_n(flag, value, __ATOMIC_SEQ_CST);
	for (int i = 0; i < t->size; i++)
		if (__atomic_load_n(&t->blocks[i]->waiting_for, __ATOMIC_SEQ_CST) == (uint64_t)t->me + 1)
			gompi_core.wake(t->locals[i]);
}

/* Team.AwaitPlace: it waits until no member reads any more what a step held. It reports false if that takes long. */
static bool team_await_place(struct gompi_team *t, uint64_t step, uint64_t after)
{
	uint64_t free = step, consumed;
	uint32_t looks = t->looks;
	if (after <= t->free)
		return true;
	for (int i = 0; i < t->size; i++) {
		if (i == t->me)
			continue;
		while ((consumed = __atomic_load_n(&t->blocks[i]->consumed, __ATOMIC_ACQUIRE)) < after)
			if (!looks || !--looks || __atomic_load_n(&t->broken, __ATOMIC_RELAXED))
				return false;
		free = lower(free, consumed);
		if (t->size == 2 && ((t->blocks[i]->uses - t->uses) & GOMPI_BLOCK_USES_MASK) > 1)
			return false; /* Part.reused: what it has read is another communicator's */
	}
	t->free = free;
	return true;
}

/* A call is how a member begins a collective. */
struct call {
	uint64_t what, count; /* as calls are compared */
	int64_t room;         /* bytes of a member's payload: the same on all */
	int64_t bytes;        /* of the longer one of this member's buffers */
	const void *data;     /* what it gives the others */
	int64_t given;        /* bytes of it */
	bool exchange;        /* all members give data */
	int64_t each;         /* bytes of a block, if data has one for each member, else 0 */
};

/* Collectives.publish of package shmcoll, with Team.Publish: it begins the only step of a collective. If it reports
 * false it has done nothing. */
static bool collectives_publish(struct gompi_team *t, const struct call *c)
{
	uint64_t s = t->step + 1;
	if (!team_await_place(t, s, team_lay(t, s, (uint64_t)c->room, c->exchange))) {
		team_lift(t);
		return false;
	}
	struct gompi_head *h = team_head(t, t->me, s);
	t->step = s;
	t->seq++;
	t->before[0] = t->digest;
	memcpy(&t->before[1], t->call, sizeof t->call);
	t->call[0] = c->what;
	t->call[1] = c->count;
	t->digest = encoded_call_digest(t->digest, t->call);
	h->call_digest = t->digest;
	h->call.a = c->what;
	h->call.b = c->count;
	uint8_t *room = team_payload(t, t->me);
	int64_t own = t->me * c->each, other = c->each - own;
	if (c->each && !c->exchange) {
		team_room(room, c->data, own);
		team_room(room + own, (const uint8_t *)c->data + own + c->each, c->given - own - c->each);
	} else if (c->each && t->size == 2) {
		team_room(room + team_block(t, 1 - t->me) * c->each, (const uint8_t *)c->data + other, c->each);
	} else {
		team_room(room, c->data, c->given);
	}
	team_store(t, &h->step, s);
	gompi_own(team_head(t, t->me, s + 1), sizeof *h); /* both lines: bcast of 64 B .45 us with one, .32 */
	recorder_begin(t, c->bytes);
	return true;
}

/* Team.AwaitCall: it waits until a member has made the call of this step. It reports false if that takes long, or if it is
 * another call. */
static bool team_await_call(const struct gompi_team *t, int member, uint32_t *looks)
{
	const struct gompi_head *h = team_head(t, member, t->step);
	uint64_t step;
	while ((step = __atomic_load_n(&h->step, __ATOMIC_ACQUIRE)) < t->step)
		if (!*looks || !--*looks || __atomic_load_n(&t->broken, __ATOMIC_RELAXED))
			return false;
	return step == t->step && h->call_digest == t->digest;
}

/* Team.Assemble */
static bool team_assemble(const struct gompi_team *t)
{
	uint32_t looks = t->looks;
	for (int i = 0; i < t->size; i++)
		if (i != t->me && !team_await_call(t, i, &looks))
			return false;
	return true;
}

/* end ends a collective of so many bytes, which is undone if it is not over: Go does it, and lends again. If the communicator
 * is broken Go does not begin it: then a member that comes late must not find it begun. */
static int end(struct gompi_team *t, bool over, int64_t bytes)
{
	if (over) {
		gompi_count_moved((uint64_t)bytes);
	} else {
		if (__atomic_load_n(&t->broken, __ATOMIC_RELAXED))
			__atomic_store_n(&team_head(t, t->me, t->step)->step, 0, __ATOMIC_SEQ_CST);
		team_lift(t);
		t->step--;
		t->seq--;
		t->digest = t->before[0];
		memcpy(t->call, &t->before[1], sizeof t->call);
		__atomic_store_n(&gompi_lease->missed_team, (uint32_t)(t - gompi_lease->teams) + 1, __ATOMIC_RELEASE);
	}
	gompi_leave_team(t);
	return over;
}

/* Team.ConsumedSoon, or Consumed: it says that this member needs nothing more of its last step, to which all may not have come. */
static void team_consumed_soon(struct gompi_team *t)
{
	t->to_ack = t->step;
	if (!t->place && t->step - t->acked < GOMPI_BLOCK_SOON)
		return;
	t->acked = t->step;
	team_store(t, &t->blocks[t->me]->consumed, t->step);
}

int gompi_short_barrier(MPI_Comm comm)
{
	struct gompi_team *t = take(IN_comm(comm), GOMPI_KIND_BARRIER, 0);
	if (!t)
		return 0;
	struct call c = {.what = GOMPI_KIND_BARRIER};
	if (!collectives_publish(t, &c)) {
		gompi_leave_team(t);
		return 0;
	}
	bool over = team_assemble(t);
	if (over)
		t->free = t->step - 1;
	return end(t, over, c.bytes);
}

/* ---- Data that moves, counted in bytes ---- */

static inline uint64_t moving(int kind, int root) { return (uint64_t)kind | GOMPI_TYPE_U8 << 8 | (uint64_t)root << 32; }

/* Collectives.bcastShort */
int gompi_short_bcast(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
	int64_t n = gompi_lease ? gompi_bytes_of(buf, count, type) : -1;
	struct gompi_team *t = take(IN_comm(comm), GOMPI_KIND_BCAST, n);
	if (!t)
		return 0;
	bool mine = root == t->me;
	struct call c = {moving(GOMPI_KIND_BCAST, root), (uint64_t)n, n, n, buf, mine ? n : 0, false, 0};
	if (root < 0 || root >= t->size || !collectives_publish(t, &c)) {
		gompi_leave_team(t);
		return 0;
	}
	uint32_t looks = t->looks;
	bool over = mine || team_await_call(t, root, &looks);
	if (over) {
		if (!mine)
			copy(buf, team_payload(t, root), n);
		team_consumed_soon(t);
	}
	return end(t, over, c.bytes);
}

/* run_of returns the bytes of a buffer, -1 if C does not move it. */
static inline int64_t run_of(const void *buf, int count, MPI_Datatype type)
{
	return gompi_lease && buf != MPI_IN_PLACE ? gompi_bytes_of(buf, count, type) : -1;
}

/* block_of returns the bytes of a block that is sent and received; -1 if the two are not equally long. */
static int64_t block_of(const void *send, int sends, MPI_Datatype sendtype, const void *recv, int receives, MPI_Datatype recvtype)
{
	int64_t n = run_of(recv, receives, recvtype);
	return run_of(send, sends, sendtype) == n ? n : -1;
}

/* apart reports whether two buffers do not overlap: what else is legal Go knows. */
static inline bool apart(const void *a, int64_t n, const void *b, int64_t m)
{
	return (uintptr_t)a + (uint64_t)n <= (uintptr_t)b || (uintptr_t)b + (uint64_t)m <= (uintptr_t)a;
}

/* collect copies to block i of to what member i gives this one, from byte off of its payload on. What this
 * member gives itself is own. */
static void collect(const struct gompi_team *t, uint8_t *to, int64_t n, int64_t off, const void *own)
{
	for (int i = 0; i < t->size; i++)
		copy(to + i * n, i == t->me ? own : team_payload(t, i) + off, n);
}

int gompi_short_allgather(const void *sendbuf, int sends, MPI_Datatype sendtype, void *recvbuf, int receives, MPI_Datatype recvtype,
			  MPI_Comm comm)
{
	int64_t n = block_of(sendbuf, sends, sendtype, recvbuf, receives, recvtype);
	struct gompi_team *t = take(IN_comm(comm), GOMPI_KIND_ALLGATHER, n);
	if (!t)
		return 0;
	struct call c = {moving(GOMPI_KIND_ALLGATHER, 0), (uint64_t)n, n, n * t->size, sendbuf, n, true, 0};
	if (!apart(sendbuf, n, recvbuf, n * t->size) || !collectives_publish(t, &c)) {
		gompi_leave_team(t);
		return 0;
	}
	bool over = team_assemble(t);
	if (over) {
		collect(t, recvbuf, n, 0, sendbuf);
		t->free = t->step - 1;
	}
	return end(t, over, c.bytes);
}

int gompi_short_alltoall(const void *sendbuf, int sends, MPI_Datatype sendtype, void *recvbuf, int receives, MPI_Datatype recvtype,
			 MPI_Comm comm)
{
	int64_t n = block_of(sendbuf, sends, sendtype, recvbuf, receives, recvtype);
	struct gompi_team *t = take(IN_comm(comm), GOMPI_KIND_ALLTOALL, n);
	if (!t)
		return 0;
	int64_t all = n * t->size, own = n * t->me;
	struct call c = {moving(GOMPI_KIND_ALLTOALL, 0), (uint64_t)all, all, all, sendbuf, all, true, n};
	if (!apart(sendbuf, all, recvbuf, all) || !collectives_publish(t, &c)) {
		gompi_leave_team(t);
		return 0;
	}
	bool over = team_assemble(t);
	if (over) {
		collect(t, recvbuf, n, team_block(t, t->me) * n, (const uint8_t *)sendbuf + own);
		t->free = t->step - 1;
	}
	return end(t, over, c.bytes);
}

/* Collectives.gatherShort */
int gompi_short_gather(const void *sendbuf, int sends, MPI_Datatype sendtype, void *recvbuf, int receives, MPI_Datatype recvtype,
		       int root, MPI_Comm comm)
{
	int64_t n = run_of(sendbuf, sends, sendtype);
	struct gompi_team *t = take(IN_comm(comm), GOMPI_KIND_GATHER, n);
	if (!t)
		return 0;
	bool mine = root == t->me; /* recvbuf and its elements mean nothing elsewhere */
	int64_t all = mine ? n * t->size : 0;
	struct call c = {moving(GOMPI_KIND_GATHER, root), (uint64_t)n, n, mine ? all : n, sendbuf, mine ? 0 : n, false, 0};
	if (root < 0 || root >= t->size || (mine && (run_of(recvbuf, receives, recvtype) != n || !apart(sendbuf, n, recvbuf, all))) ||
	    !collectives_publish(t, &c)) {
		gompi_leave_team(t);
		return 0;
	}
	bool over = !mine || team_assemble(t);
	if (over) {
		if (mine)
			collect(t, recvbuf, n, 0, sendbuf);
		team_consumed_soon(t);
	}
	return end(t, over, c.bytes);
}

/* Collectives.scatterShort */
int gompi_short_scatter(const void *sendbuf, int sends, MPI_Datatype sendtype, void *recvbuf, int receives, MPI_Datatype recvtype,
			int root, MPI_Comm comm)
{
	int64_t n = run_of(recvbuf, receives, recvtype);
	struct gompi_team *t = take(IN_comm(comm), GOMPI_KIND_SCATTER, n);
	if (!t)
		return 0;
	bool mine = root == t->me; /* sendbuf and its elements mean nothing elsewhere */
	int64_t all = n * t->size, own = n * t->me;
	struct call c = {moving(GOMPI_KIND_SCATTER, root), (uint64_t)n, all - n, mine ? all : n, sendbuf, mine ? all : 0, false,
			 mine ? n : 0};
	if (root < 0 || root >= t->size || (mine && (run_of(sendbuf, sends, sendtype) != n || !apart(sendbuf, all, recvbuf, n))) ||
	    !collectives_publish(t, &c)) {
		gompi_leave_team(t);
		return 0;
	}
	uint32_t looks = t->looks;
	bool over = mine || team_await_call(t, root, &looks);
	if (over) {
		copy(recvbuf, mine ? (const uint8_t *)sendbuf + own : team_payload(t, root) + own - (t->me > root ? n : 0), n);
		team_consumed_soon(t);
	}
	return end(t, over, c.bytes);
}

/* ---- Reductions ---- */

/* gompi_combine_here stores a op b, of n elements each. */
void gompi_combine_here(int type, int op, void *to, const void *a, const void *b, int64_t n) { mem_reduce(type, op, to, a, b, n); }

/* A reduction is what C knows of one. */
struct reduction {
	int type, op;
	int64_t bytes; /* negative if C does not combine such operands */
	const void *operand;
};

static struct reduction reduction_of(const void *sendbuf, const void *recvbuf, int count, MPI_Datatype type, MPI_Op op)
{
	gompi_word id = IN_datatype(type), operator = IN_op(op);
	const void *operand = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
	struct reduction r = {.operand = operand, .bytes = gompi_bytes_of(operand, count, type)};
	if (r.bytes < 0 || id >= GOMPI_LEASE_SIZES || operator < 0 || operator >= GOMPI_LEASE_OPERATORS)
		return (struct reduction){.bytes = -1};
	r.type = gompi_lease->elements[id];
	r.op = gompi_lease->operators[operator];
	bool known = r.type == GOMPI_TYPE_I32 || r.type == GOMPI_TYPE_I64 || r.type == GOMPI_TYPE_F32 || r.type == GOMPI_TYPE_F64;
	if (!known || !r.op)
		r.bytes = -1;
	return r;
}

static inline uint64_t what_of(int kind, const struct reduction *r, int root)
{
	return (uint64_t)kind | (uint64_t)r->type << 8 | (uint64_t)r->op << 16 | (uint64_t)root << 32;
}

/* Collectives.combineStep: it stores the combination of what all members give from byte off of
 * their payload on, in their order. All have come. own is this member's operand if it is not read from its payload. */
static void collectives_combine_step(const struct gompi_team *t, const struct reduction *r, void *result, int64_t count, int64_t off,
				     const void *own)
{
	const void *sum = own && !t->me ? own : team_payload(t, 0) + off;
	for (int i = 1; i < t->size; i++, sum = result)
		gompi_combine_here(r->type, r->op, result, sum, own && i == t->me ? own : team_payload(t, i) + off, count);
	if (t->size == 1)
		memcpy(result, sum, (size_t)r->bytes);
}

/* Collectives.allreduceShort */
int gompi_short_allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	struct reduction r = {.bytes = -1};
	if (gompi_lease && sendbuf != recvbuf && (recvbuf || !count))
		r = reduction_of(sendbuf, recvbuf, count, type, op);
	struct gompi_team *t = take(IN_comm(comm), GOMPI_KIND_ALLREDUCE, r.bytes);
	if (!t)
		return 0;
	struct call c = {what_of(GOMPI_KIND_ALLREDUCE, &r, 0), (uint64_t)count, r.bytes, r.bytes, r.operand, r.bytes, true, 0};
	if (!collectives_publish(t, &c)) {
		gompi_leave_team(t);
		return 0;
	}
	bool over = team_assemble(t);
	if (over) {
		collectives_combine_step(t, &r, recvbuf, count, 0, NULL);
		t->free = t->step - 1;
	}
	return end(t, over, c.bytes);
}

/* Collectives.reduceShort */
int gompi_short_reduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
{
	struct reduction r = {.bytes = -1};
	/* recvbuf means nothing elsewhere than at the root, which alone may reduce in place. */
	if (gompi_lease && sendbuf != MPI_IN_PLACE)
		r = reduction_of(sendbuf, NULL, count, type, op);
	struct gompi_team *t = take(IN_comm(comm), GOMPI_KIND_REDUCE, r.bytes);
	if (!t)
		return 0;
	bool mine = root == t->me;
	struct call c = {what_of(GOMPI_KIND_REDUCE, &r, root), (uint64_t)count, r.bytes, r.bytes, sendbuf, r.bytes, false, 0};
	if (root < 0 || root >= t->size || (mine && (sendbuf == recvbuf || (count && !recvbuf))) || !collectives_publish(t, &c)) {
		gompi_leave_team(t);
		return 0;
	}
	bool over = !mine || team_assemble(t);
	if (over) {
		if (mine)
			collectives_combine_step(t, &r, recvbuf, count, 0, NULL);
		team_consumed_soon(t);
	}
	return end(t, over, c.bytes);
}

int gompi_short_reduce_scatter_block(const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	struct reduction r = {.bytes = -1};
	if (gompi_lease && sendbuf != MPI_IN_PLACE && (recvbuf || !count))
		r = reduction_of(sendbuf, NULL, count, type, op);
	struct gompi_team *t = take(IN_comm(comm), GOMPI_KIND_REDUCE_SCATTER_BLOCK, r.bytes);
	if (!t)
		return 0;
	int64_t all = r.bytes * t->size;
	struct call c = {what_of(GOMPI_KIND_REDUCE_SCATTER_BLOCK, &r, 0), (uint64_t)count, all, all, sendbuf, all, true, r.bytes};
	if (!apart(sendbuf, all, recvbuf, r.bytes) || !collectives_publish(t, &c)) {
		gompi_leave_team(t);
		return 0;
	}
	bool over = team_assemble(t);
	if (over) {
		collectives_combine_step(t, &r, recvbuf, count, r.bytes * team_block(t, t->me),
					 (const uint8_t *)sendbuf + r.bytes * t->me);
		t->free = t->step - 1;
	}
	return end(t, over, c.bytes);
}
