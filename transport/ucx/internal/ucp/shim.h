// Package ucp and its C code share this, all in C's memory. The engine serialises the calls, so nothing here is atomic.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
	GOMPI_HEADER = 48,            // transport.HeaderSize
	GOMPI_SMALL = 2048,           // the longest payload that a message holds itself
	GOMPI_HELLO = 160,            // the longest hello
	// Bytes of a staging chunk. Several stay in the second-level cache (AMD EPYC, bw of 4 MiB in
	// chunks of 128, 256 and 512 KiB: over posix 480, 677 and 960 us, over tcp 2510, 2216 and 1855).
	GOMPI_CHUNK = 128 << 10,
	GOMPI_HELLOS = 1024,          // the most hellos that wait for Go
	GOMPI_REGIONS = 1024,         // that may be registered at a time
	GOMPI_PART = 4 << 20,         // the most bytes of a put from registered memory in a message
};

// What a message is.
enum gompi_kind {
	GOMPI_KIND_FIRST,  // begins a frame: its header, and payload
	GOMPI_KIND_MORE,   // payload
	GOMPI_KIND_ACK,    // the answer to a goodbye
	GOMPI_KIND_PUT,    // part of a put: gompi_put, and payload for the place that it names
	GOMPI_KIND_STORED, // the answer to the last part of a put
	GOMPI_KIND_DONE,   // of ours: the get or flush with this number is over; the payload is a get's
	GOMPI_KIND_HELLO,  // of an unproven sender; from is 0
	GOMPI_KIND_FAILED, // of ours: no more comes from this peer; status says why
};

typedef struct gompi_chunk gompi_chunk;
typedef struct gompi_peer gompi_peer;
typedef struct gompi_region gompi_region;
typedef struct gompi_remote gompi_remote;

// What begins every active message but a hello.
typedef struct {
	uint64_t token; // proves the sender: both sides computed it from the job's secret; or a number
	uint32_t from;
	uint32_t seq; // the number of the message from that rank
	uint32_t kind;
	uint32_t unused;
} gompi_prefix;

// What a part of a put begins with. A place is 18 bits of the number of recalls by the rank that
// has it, 10 bits of a region and 36 bits of an offset there, from 1.
typedef struct {
	uint64_t place, offset; // where the part goes: offset bytes behind the place
	uint64_t last;          // 1 in the last part
} gompi_put;

// A message that has arrived, or a small one on its way.
typedef struct gompi_message {
	struct gompi_message *next;
	gompi_peer *peer;
	gompi_chunk *chunk; // that data is in, if it is ours
	gompi_region *region; // that a put is stored in
	void *descriptor;   // UCX's, of a payload that waits for a chunk
	int lent;           // data belongs to UCX
	int here;           // data has arrived
	int status;         // negative: it will not
	int dropped;        // a put's: its place has been recalled, or there is none
	uint32_t head_size; // bytes of head
	char *data;
	size_t size;
	gompi_prefix prefix;
	char head[GOMPI_HEADER + GOMPI_SMALL]; // what follows the prefix
} gompi_message;

typedef struct {
	gompi_message *ready, *last; // for Go, in order
	gompi_message *done;         // that Go has handled: the next poll frees them
	uint32_t outstanding;        // requests under way
	uint32_t stuck;              // of them, those to peers that were disconnected before they answered
	uint32_t hellos;             // in ready
	uint32_t slabs;              // that may be registered yet, each of 16 chunks
	uint64_t unauthenticated;          // messages dropped for want of a valid token
	uint64_t recalls;            // of this rank's places
	size_t small;                // the longest payload of a message without a chunk
	int fd;                      // readable when there is progress to make, after arm
	void *address;
	size_t address_size;
	char header[GOMPI_HEADER]; // of the frame or put that is sent next
} gompi_worker;

int gompi_ucp_foreign(void);
const char *gompi_ucp_load(const char *library);
const char *gompi_ucp_text(int status);

// open returns an error, or NULL. memory says that tls has shared memory, verbs that it has
// InfiniBand or RoCE. slabs is how often chunks may be registered, 16 at a time.
const char *gompi_ucp_open(gompi_worker **, uint32_t rank, uint32_t size, const char *tls, const char *devices, int memory, int verbs, uint32_t slabs);
// close ends everything and returns the number of requests that UCX does not complete; the memory that they use is not freed.
uint32_t gompi_ucp_close(gompi_worker *);

int gompi_ucp_connect(gompi_worker *, uint32_t rank, const char *address, size_t);
void gompi_ucp_disconnect(gompi_worker *, uint32_t rank);
// admit accepts messages from a rank that carry the token in, and sets the one that ours carry.
void gompi_ucp_admit(gompi_worker *, uint32_t rank, uint64_t in, uint64_t out);
int gompi_ucp_hello(gompi_worker *, uint32_t rank, const char *hello, size_t);
// send sends a message with a copy of size bytes, at most GOMPI_CHUNK, and with the header if it is
// a first one. It returns 0 if too much is on its way to that rank.
int gompi_ucp_send(gompi_worker *, uint32_t rank, int kind, const char *data, size_t size);

// register makes region id of memory that is not Go's. It returns UCX's status.
int gompi_ucp_register(gompi_worker *, uint32_t id, char *bytes, size_t);
// deregister returns 0 if UCX may still read or write the region: then it stays as it is.
int gompi_ucp_deregister(gompi_worker *, uint32_t id);
// put sends part of a put from a region, without a copy: UCX may read it until the peer has stored
// it. It returns 0 if too much is on its way to that rank.
int gompi_ucp_put(gompi_worker *, uint32_t rank, uint32_t id, const char *data, size_t);

// key stores what makes region id accessible to peers, and returns its length, 0 if it has none.
size_t gompi_ucp_key(gompi_worker *, uint32_t id, char *key, size_t room);
// remote is memory of a rank that has sent a key, NULL if UCX cannot access it. forget ends that, when nothing is under way.
gompi_remote *gompi_ucp_remote(gompi_worker *, uint32_t rank, const char *key);
void gompi_ucp_forget(gompi_worker *, gompi_remote *);
// write stores a copy of at most GOMPI_CHUNK bytes there, read copies from there: both return 0 if
// too much is under way. A message with the number tells when a read is over, and after settle when
// all writes to a rank before it are done there. An access that fails is the end of the rank.
int gompi_ucp_write(gompi_remote *, uint64_t at, const char *data, size_t);
int gompi_ucp_read(gompi_remote *, uint64_t at, size_t, uint64_t number);
void gompi_ucp_settle(gompi_worker *, uint32_t rank, uint64_t number);

int gompi_ucp_poll(gompi_worker *);
int gompi_ucp_arm(gompi_worker *); // 1: armed, 0: there is progress to make
void gompi_ucp_flush(gompi_worker *);
// info returns what UCX prints of the endpoint of a rank, which the caller frees, or NULL.
char *gompi_ucp_info(gompi_worker *, uint32_t rank);
