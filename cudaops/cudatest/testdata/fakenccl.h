// What the ranks of the fake NCCL and its hub have in common. See fakenccl.c.

#pragma once
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { OK, CUDA_ERROR, SYSTEM_ERROR, INTERNAL_ERROR, INVALID_ARGUMENT, INVALID_USAGE, REMOTE_ERROR, IN_PROGRESS };
enum { I8, U8, I32, U32, I64, U64, F16, F32, F64, BF16, TYPES };
enum { SUM, PROD, MAX, MIN, AVG, OPS };

typedef struct {
	char name[128];
} unique_id;

enum { JOIN = 100, BYE, ALL_REDUCE, REDUCE, BROADCAST, REDUCE_SCATTER, ALL_GATHER, EXCHANGE };

// A message goes to the hub, followed by that many bytes. What is called alike must be
// equal in what.
typedef struct {
	struct {
		int kind, type, op, root, size, zero; // without padding: they are compared as bytes
		uint64_t count;
	} what;
	int rank;
	uint64_t bytes;
} message;

typedef struct {
	int code;
	uint64_t bytes;
} answer;

// transfer sends, or receives, n bytes, and returns 0; or -1 if the other end is gone or
// *stop is set.
int transfer(int fd, void *at, size_t n, int sends, atomic_int *stop);

// address returns the address of the hub with that id.
struct sockaddr_un address(const unique_id *id, socklen_t *n);

// start_hub starts the hub that listener, at its address, is for.
void start_hub(int listener);

void start_thread(void *(*f)(void *), void *arg);
