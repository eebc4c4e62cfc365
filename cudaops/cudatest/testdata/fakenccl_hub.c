// The hub of the fake NCCL: it hears what all ranks call, and answers with what comes of
// it. See fakenccl.c.

#include "fakenccl.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int transfer(int fd, void *at, size_t n, int sends, atomic_int *stop) {
	while (n) {
		if (stop && atomic_load(stop)) return -1;
		struct pollfd p = {fd, sends ? POLLOUT : POLLIN};
		if (poll(&p, 1, stop ? 2 : -1) <= 0) continue;
		ssize_t k = sends ? send(fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT) : recv(fd, at, n, MSG_DONTWAIT);
		if (k < 0 && (errno == EAGAIN || errno == EINTR)) continue;
		if (k <= 0) return -1;
		at = (char *)at + k, n -= k;
	}
	return 0;
}

struct sockaddr_un address(const unique_id *id, socklen_t *n) {
	struct sockaddr_un a = {AF_UNIX};
	snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "%.100s", id->name);
	*n = sizeof a.sun_family + 1 + strlen(a.sun_path + 1);
	return a;
}

void start_thread(void *(*f)(void *), void *arg) {
	pthread_t t;
	pthread_create(&t, NULL, f, arg);
	pthread_detach(t);
}

// ---- arithmetic

static float from_bf16(uint16_t v) {
	uint32_t bits = (uint32_t)v << 16;
	float f;
	memcpy(&f, &bits, 4);
	return f;
}

static uint16_t to_bf16(float f) {
	uint32_t bits;
	memcpy(&bits, &f, 4);
	return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

#define SAME(x) (x)
#define COMBINE(a, b) (op == PROD ? a * b : op == MAX ? (a > b ? a : b) : op == MIN ? (a < b ? a : b) : a + b)

// LOOP combines element after element of all srcs; averages of floats divide before they
// add, as NCCL's do.
#define LOOP(T, A, load, store, floating) \
	for (uint64_t i = 0; i < n; i++) { \
		A scale = floating && op == AVG ? (A)1 / (A)size : (A)1; \
		A acc = (A)(load(((T *)srcs[0])[i]) * scale); \
		for (int j = 1; j < size; j++) { \
			A x = (A)(load(((T *)srcs[j])[i]) * scale); \
			acc = COMBINE(acc, x); \
		} \
		if (!floating && op == AVG) acc = (A)(acc / (A)size); \
		((T *)dst)[i] = store(acc); \
	} \
	break;

static void combine(int type, int op, char *dst, char **srcs, int size, uint64_t n) {
	switch (type) {
	case I8: LOOP(int8_t, int8_t, SAME, SAME, 0)
	case U8: LOOP(uint8_t, uint8_t, SAME, SAME, 0)
	case I32: LOOP(int32_t, int32_t, SAME, SAME, 0)
	case U32: LOOP(uint32_t, uint32_t, SAME, SAME, 0)
	case I64: LOOP(int64_t, int64_t, SAME, SAME, 0)
	case U64: LOOP(uint64_t, uint64_t, SAME, SAME, 0)
	case F16: LOOP(_Float16, float, SAME, (_Float16), 1)
	case BF16: LOOP(uint16_t, float, from_bf16, to_bf16, 1)
	case F32: LOOP(float, float, SAME, SAME, 1)
	case F64: LOOP(double, double, SAME, SAME, 1)
	}
}

// ---- the hub

typedef struct {
	int listener, size;
	int *fds, *heard;
	message *said; // by those heard of
	char **data;
} hub;

static int reply(hub *h, int rank, int code, void *data, uint64_t n) {
	answer a = {code, n};
	return transfer(h->fds[rank], &a, sizeof a, 1, NULL) || transfer(h->fds[rank], data, n, 1, NULL);
}

static int reply_all(hub *h, int code, void *data, uint64_t n) {
	for (int i = 0; i < h->size; i++)
		if (reply(h, i, code, data, n)) return -1;
	return 0;
}

// sizes returns how many bytes a rank sends to each in an exchange, and then, how many
// it expects from each: its data begin with that.
static uint64_t *sizes(hub *h, int rank) { return (uint64_t *)h->data[rank]; }

// partners marks those whom rank exchanges something with, and whom they do. It returns
// 0 if not all of them have been heard of, else 1; or -1 if they disagree.
static int partners(hub *h, int rank, char *in) {
	int n = h->size;
	in[rank] = 1;
	if (!h->heard[rank]) return 0;
	if (h->said[rank].what.kind != EXCHANGE) return -1;
	for (int j = 0; j < n; j++) {
		uint64_t out = sizes(h, rank)[j], from = sizes(h, rank)[n + j];
		if (!out && !from) continue;
		int all = in[j] ? 1 : partners(h, j, in);
		if (all != 1) return all;
		if (h->heard[j] && (out != sizes(h, j)[n + rank] || from != sizes(h, j)[rank])) return -1;
	}
	return 1;
}

// deliver gives a rank what its partners have for it.
static int deliver(hub *h, int to, char *in) {
	int n = h->size;
	uint64_t all = 0, at = 0;
	for (int i = 0; i < n; i++) all += sizes(h, to)[n + i];
	char *out = malloc(all + 1);
	for (int i = 0; i < n; i++) {
		if (!in[i]) continue;
		char *from = h->data[i] + 16 * n;
		for (int j = 0; j < to; j++) from += sizes(h, i)[j];
		memcpy(out + at, from, sizes(h, i)[to]);
		at += sizes(h, i)[to];
	}
	int gone = reply(h, to, OK, out, all);
	free(out);
	return gone;
}

// exchange answers a rank and its partners, if all have been heard of. It reports
// whether they have.
static int exchange(hub *h, int rank) {
	char in[h->size];
	memset(in, 0, sizeof in);
	int all = partners(h, rank, in);
	for (int i = 0; all && i < h->size; i++)
		if (in[i] && h->heard[i]) all > 0 ? deliver(h, i, in) : reply(h, i, INVALID_USAGE, NULL, 0);
	for (int i = 0; all && i < h->size; i++)
		if (in[i]) h->heard[i] = 0;
	return all != 0;
}

// collective answers what all have said.
static int collective(hub *h) {
	message *m = &h->said[0];
	uint64_t n = m->what.count;
	for (int i = 1; i < h->size; i++)
		if (memcmp(&h->said[i].what, &m->what, sizeof m->what)) return reply_all(h, INVALID_USAGE, NULL, 0);
	switch (m->what.kind) {
	case JOIN: case BYE: return reply_all(h, OK, NULL, 0);
	case BROADCAST: return reply_all(h, OK, h->data[m->what.root], n);
	}
	int gone = 0;
	uint64_t each = m->bytes;
	char *all = malloc(each * h->size + 1);
	switch (m->what.kind) {
	case ALL_GATHER:
		for (int i = 0; i < h->size; i++) memcpy(all + i * each, h->data[i], each);
		gone = reply_all(h, OK, all, each * h->size);
		break;
	case ALL_REDUCE:
		combine(m->what.type, m->what.op, all, h->data, h->size, n);
		gone = reply_all(h, OK, all, each);
		break;
	case REDUCE:
		combine(m->what.type, m->what.op, all, h->data, h->size, n);
		for (int i = 0; i < h->size && !gone; i++) gone = reply(h, i, OK, all, i == m->what.root ? each : 0);
		break;
	case REDUCE_SCATTER:
		combine(m->what.type, m->what.op, all, h->data, h->size, n * h->size);
		for (int i = 0; i < h->size && !gone; i++) gone = reply(h, i, OK, all + i * (each / h->size), each / h->size);
		break;
	}
	free(all);
	return gone;
}

// hear reads one message of a rank.
static int hear(int fd, message *m, char **data) {
	if (transfer(fd, m, sizeof *m, 0, NULL)) return -1;
	free(*data);
	*data = malloc(m->bytes + 1);
	return transfer(fd, *data, m->bytes, 0, NULL);
}

static void make_room(hub *h, int size) {
	h->size = size;
	h->fds = calloc(size, sizeof *h->fds);
	h->heard = calloc(size, sizeof *h->heard);
	h->said = calloc(size, sizeof *h->said);
	h->data = calloc(size, sizeof *h->data);
}

// listen_to_all waits until a rank says something.
static int listen_to_all(hub *h) {
	struct pollfd p[h->size];
	for (int i = 0; i < h->size; i++) p[i] = (struct pollfd){h->heard[i] ? -1 : h->fds[i], POLLIN};
	poll(p, h->size, -1);
	for (int i = 0; i < h->size; i++)
		if (p[i].revents) {
			if (hear(h->fds[i], &h->said[i], &h->data[i])) return -1;
			h->heard[i] = 1;
		}
	return 0;
}

// answer_all answers whom it can. It reports whether the hub has nothing to do any more.
static int answer_all(hub *h) {
	int whole = 0;
	for (int i = 0; i < h->size; i++)
		if (h->heard[i] && h->said[i].what.kind == EXCHANGE && exchange(h, i)) i = -1; // others may be next
	for (int i = 0; i < h->size; i++) whole += h->heard[i] && h->said[i].what.kind != EXCHANGE;
	if (whole < h->size) return 0;
	memset(h->heard, 0, h->size * sizeof *h->heard);
	return collective(h) || h->said[0].what.kind == BYE;
}

// serve is the hub's thread. When a rank is lost it stops, and notifies no rank: the other
// connections stay open.
static void *serve(void *arg) {
	hub *h = arg;
	for (int n = 0; !h->size || n < h->size; n++) {
		int fd = accept4(h->listener, NULL, NULL, SOCK_CLOEXEC);
		message m;
		char *none = NULL;
		if (fd < 0 || hear(fd, &m, &none)) return NULL;
		free(none);
		if (!h->size) make_room(h, m.what.size);
		h->fds[m.rank] = fd;
		h->said[m.rank] = m;
	}
	close(h->listener);
	for (int over = collective(h); !over;) over = listen_to_all(h) || answer_all(h);
	return NULL;
}

void start_hub(int listener) {
	hub *h = calloc(1, sizeof *h);
	h->listener = listener;
	start_thread(serve, h);
}
