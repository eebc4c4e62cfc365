/* What Go lends to C for short messages: package lease of comm/internal has the rules. The offsets of
 * all that is used here are compared with Go's when it is attached. */
#ifndef GOMPI_LEASE_H
#define GOMPI_LEASE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GOMPI_SLOTS = 256, GOMPI_LOCALS = 1024, GOMPI_SIZES = 1024, GOMPI_HELD = 256, GOMPI_WINDOWS = 256 };
enum { GOMPI_NONE, GOMPI_LENT, GOMPI_BUSY };

/* The ends of rings, as package shm of transport has them. */
struct gompi_control {
	uint64_t head, helped, rest[6];
	uint32_t hungry, rest2;
};

struct gompi_ring {
	struct gompi_control *control;
	uint8_t *mem;
	int64_t length, capacity; /* of mem */
	uint64_t lap, base;
};

struct gompi_writer {
	struct gompi_ring ring;
	uint64_t tail, seen, read;
	bool turns;
	uint64_t since, clean;
	bool bulk;
	int64_t most;
	uint64_t full;
};

struct gompi_reader {
	struct gompi_ring ring;
	uint64_t pos, returned;
	uint64_t *here;
};

struct gompi_credit {
	int64_t out, owed;
};

struct gompi_carried {
	uint64_t messages, bytes;
};

struct gompi_peer {
	struct gompi_writer *w;
	struct gompi_reader *r;
	bool *behind;
	uint32_t *parked;
	struct gompi_credit *credit;
	struct gompi_carried *carried;
	uint32_t stamp, used;
	int32_t local, rest;
};

struct gompi_channel {
	uint32_t stamp;
	int32_t size;
	uint32_t used;
	uint32_t whole; /* all other members are peers that are lent, too */
	uint64_t context;
};

/* A receive that C holds: posted, and Go does not know of it. */
struct gompi_held {
	uint32_t state;
	int32_t slot;
	int32_t source, tag; /* what is wanted, then what has come */
	int64_t bytes;       /* of the buffer, then of the message */
	int64_t run, stride; /* the buffer is runs of as many bytes, stride apart */
	void *buf;
	uint32_t next, prev; /* of those posted, in order: 1 more than the place, 0 at the ends */
};
enum { GOMPI_FREE, GOMPI_POSTED, GOMPI_ARRIVED, GOMPI_TAKEN };

/* An element of a datatype: runs of as many bytes, stride apart, the first at off. If run and stride are
 * size, elements follow each other without a gap. */
struct gompi_shape {
	uint32_t size, run; /* size 0: none of these */
	int32_t stride, off;
};

/* A ring of package shmsync. */
enum { GOMPI_BLOCK_LINE = 128, GOMPI_SMALL_MOST = 1 << 10, GOMPI_DEPTH = 64 };
struct gompi_bounce {
	int64_t at;
	uint64_t size, next;
	struct {
		uint64_t step, start;
	} held[GOMPI_DEPTH];
	uint64_t n, out, gone;
};

/* Kinds of calls, as these are compared. From GOMPI_KIND_REDUCE_SCATTER_BLOCK on each rank has a
 * block. */
enum { GOMPI_KIND_BARRIER = 1, GOMPI_KIND_BCAST, GOMPI_KIND_REDUCE, GOMPI_KIND_ALLREDUCE, GOMPI_KIND_REDUCE_SCATTER_BLOCK = 6 };
enum { GOMPI_KIND_ALLGATHER = 7, GOMPI_KIND_GATHER = 9, GOMPI_KIND_SCATTER = 11, GOMPI_KIND_ALLTOALL = 13, GOMPI_KINDS };

/* What short collectives of a communicator need. */
enum { GOMPI_MEMBERS = 32, GOMPI_OPERATORS = 64 };

struct gompi_team {
	uint32_t word, broken;
	int32_t me, size;
	uint32_t looks, left;
	int32_t most[GOMPI_KINDS]; /* bytes of all members' blocks, or of the vector; negative: none in C */
	uint64_t step, free, acked, to_ack, digest, seq, call[2];
	uint64_t before[3]; /* the last call: the digest and the call before it */
	uint64_t comm;
	struct gompi_record *recorder;
	uint64_t *next;
	struct gompi_block *blocks[GOMPI_MEMBERS];
	int32_t locals[GOMPI_MEMBERS];
	struct gompi_bounce *rings[2]; /* of the small bounce buffer and the next */
	/* The last step: the place of its payload in a block, 0 if it is in the head, and the ring, with what was
	 * there before. */
	uint64_t place;
	struct gompi_bounce *ring;
	uint64_t next_before, n_before;
};
enum { GOMPI_MOST_BYTES = 4 << 10 };

/* A member's memory, as package shmsync has it. */
enum { GOMPI_SOON = 16, GOMPI_IN_HEAD = 96 };

struct gompi_head {
	uint64_t step, digest, call[2];
	uint8_t payload[GOMPI_IN_HEAD];
};

struct gompi_block {
	uint64_t waiting_for, rest[15];
	uint64_t consumed, rest2[95];
	struct gompi_head heads[GOMPI_DEPTH];
};

/* Types and operators, as calls are compared. */
enum { GOMPI_INT32 = 3, GOMPI_INT64, GOMPI_BYTES, GOMPI_UINT32 = 7, GOMPI_UINT64, GOMPI_FLOAT = 11, GOMPI_DOUBLE };
enum { GOMPI_SUM = 1, GOMPI_PROD, GOMPI_MIN, GOMPI_MAX };

/* A call in the flight recorder, as package seg has it. */
enum { GOMPI_RECORDED = 64, GOMPI_RECORD_BUSY = 1, GOMPI_RECORD_DONE = 3 };

struct gompi_record {
	uint64_t stamp, comm, what, count, bytes, start, seq, rest;
};

/* A window, as Window of package lease. Bytes are bools, but held. */
enum { GOMPI_UNLOCKED, GOMPI_FOR_READING, GOMPI_FOR_WRITING };

struct gompi_window_control {
	uint32_t element, rest[15];
	uint32_t tickets, rest2[15];
	uint32_t begun, ended;
};

struct gompi_part {
	uint8_t *here;
	int64_t size, unit;
	struct gompi_window_control *control;
	uint8_t direct, shared, held, locked, started;
};

struct gompi_window {
	uint32_t *broken;
	struct gompi_part *parts;
	int32_t ranks;
	uint32_t left;
	uint8_t all_direct, local, fenced, all, started;
};

struct gompi_lease {
	uint32_t word, wanted, stamp, left;
	uint32_t spin, most;
	int64_t credit;
	uint32_t type, mix;
	uint32_t missed;
	int32_t missed_comm, missed_rank;
	uint32_t vain;             /* looks since the last success: C's */
	uint32_t holds;            /* receives that are posted or have arrived: Go takes them over when it is entered */
	uint32_t first, last;      /* of those posted, as next */
	uint32_t place;            /* where a free one is looked for */
	uint32_t missed_team;      /* 1 more than a slot */
	uint8_t rest[52];
	struct gompi_channel channels[GOMPI_SLOTS];
	struct gompi_peer peers[GOMPI_LOCALS];
	uint16_t routes[GOMPI_SLOTS][GOMPI_LOCALS];
	uint8_t sizes[GOMPI_SIZES]; /* of datatypes that are one run of bytes, by id; 0 of others */
	struct gompi_shape derived[GOMPI_SIZES]; /* of the program's, by handle */
	struct gompi_held held[GOMPI_HELD];

	uint8_t elements[GOMPI_SIZES]; /* of datatypes: mem.Type */
	uint8_t operators[GOMPI_OPERATORS]; /* mem.Op */
	struct gompi_team teams[GOMPI_SLOTS];
	struct gompi_window *windows[GOMPI_WINDOWS];
};

enum { GOMPI_SHORT_LAP = 2 << 10, GOMPI_SMALL_RECORD = 2112, GOMPI_STREAM_LAP = 256 << 10, GOMPI_SMALL_BODY = 1 << 10 };
enum { GOMPI_AHEAD = 17, GOMPI_FETCHED = 4 << 10 };

/* gompi_layout is what Go compares: LentLayout of package shm, Layout of shmsync, RecordLayout of seg,
 * then that of package lease. */
#define GOMPI_LAYOUT { \
	offsetof(struct gompi_writer, ring.mem), offsetof(struct gompi_writer, ring.lap), offsetof(struct gompi_writer, ring.base), \
	offsetof(struct gompi_writer, tail), offsetof(struct gompi_writer, seen), offsetof(struct gompi_writer, read), \
	offsetof(struct gompi_writer, turns), offsetof(struct gompi_writer, since), offsetof(struct gompi_writer, clean), \
	offsetof(struct gompi_writer, bulk), offsetof(struct gompi_writer, most), offsetof(struct gompi_writer, full), \
	offsetof(struct gompi_reader, pos), offsetof(struct gompi_reader, returned), offsetof(struct gompi_reader, here), \
	offsetof(struct gompi_control, hungry), \
	GOMPI_SHORT_LAP, GOMPI_SMALL_RECORD, GOMPI_STREAM_LAP, GOMPI_SMALL_BODY, GOMPI_AHEAD, GOMPI_FETCHED, \
	offsetof(struct gompi_block, consumed), offsetof(struct gompi_block, heads), \
	sizeof(struct gompi_head), offsetof(struct gompi_head, digest), offsetof(struct gompi_head, call), \
	offsetof(struct gompi_head, payload), GOMPI_IN_HEAD, GOMPI_DEPTH, GOMPI_SOON, GOMPI_BLOCK_LINE, GOMPI_SMALL_MOST, \
	sizeof(struct gompi_bounce), offsetof(struct gompi_bounce, next), offsetof(struct gompi_bounce, held), \
	offsetof(struct gompi_bounce, n), offsetof(struct gompi_bounce, gone), \
	sizeof(struct gompi_record), offsetof(struct gompi_record, what), offsetof(struct gompi_record, seq), \
	GOMPI_RECORDED, GOMPI_RECORD_BUSY, GOMPI_RECORD_DONE, \
	GOMPI_KIND_BARRIER, GOMPI_KIND_BCAST, GOMPI_KIND_REDUCE, GOMPI_KIND_ALLREDUCE, GOMPI_KIND_REDUCE_SCATTER_BLOCK, \
	GOMPI_KIND_ALLGATHER, GOMPI_KIND_GATHER, GOMPI_KIND_SCATTER, GOMPI_KIND_ALLTOALL, GOMPI_KINDS, \
	GOMPI_INT32, GOMPI_INT64, GOMPI_BYTES, GOMPI_UINT32, GOMPI_UINT64, GOMPI_FLOAT, GOMPI_DOUBLE, GOMPI_SUM, GOMPI_PROD, GOMPI_MIN, GOMPI_MAX, \
	offsetof(struct gompi_lease, spin), offsetof(struct gompi_lease, credit), offsetof(struct gompi_lease, missed), \
	offsetof(struct gompi_lease, channels), sizeof(struct gompi_channel), offsetof(struct gompi_channel, context), \
	offsetof(struct gompi_lease, peers), sizeof(struct gompi_peer), offsetof(struct gompi_peer, stamp), \
	offsetof(struct gompi_peer, local), offsetof(struct gompi_lease, routes), offsetof(struct gompi_lease, sizes), \
	offsetof(struct gompi_lease, derived), sizeof(struct gompi_shape), offsetof(struct gompi_shape, run), \
	offsetof(struct gompi_shape, stride), offsetof(struct gompi_shape, off), offsetof(struct gompi_lease, holds), offsetof(struct gompi_lease, held), sizeof(struct gompi_held), \
	offsetof(struct gompi_held, bytes), offsetof(struct gompi_held, run), offsetof(struct gompi_held, stride), \
	offsetof(struct gompi_held, buf), offsetof(struct gompi_held, next), sizeof(struct gompi_lease), \
	offsetof(struct gompi_lease, missed_team), offsetof(struct gompi_lease, elements), offsetof(struct gompi_lease, operators), \
	offsetof(struct gompi_lease, teams), sizeof(struct gompi_team), offsetof(struct gompi_team, most), \
	offsetof(struct gompi_team, step), offsetof(struct gompi_team, seq), offsetof(struct gompi_team, call[1]), \
	offsetof(struct gompi_team, next), offsetof(struct gompi_team, blocks), offsetof(struct gompi_team, locals), \
	offsetof(struct gompi_team, rings), GOMPI_MOST_BYTES, \
	offsetof(struct gompi_lease, windows), offsetof(struct gompi_window, ranks), offsetof(struct gompi_window, left), \
	offsetof(struct gompi_window, all_direct), offsetof(struct gompi_window, local), offsetof(struct gompi_window, fenced), \
	offsetof(struct gompi_window, all), offsetof(struct gompi_window, started), sizeof(struct gompi_part), offsetof(struct gompi_part, unit), \
	offsetof(struct gompi_part, control), offsetof(struct gompi_part, direct), offsetof(struct gompi_part, shared), \
	offsetof(struct gompi_part, held), offsetof(struct gompi_part, locked), offsetof(struct gompi_part, started), \
	offsetof(struct gompi_window_control, tickets), offsetof(struct gompi_window_control, begun), \
	offsetof(struct gompi_window_control, ended), GOMPI_FOR_READING, GOMPI_FOR_WRITING }

#endif
