/* What the test programs share: they end with a status of 1 and a line if anything is not as it should be. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gompi.h"

#define CHECK(is, ...) \
	do { \
		if (!(is)) { \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #is); \
			fprintf(stderr, __VA_ARGS__); \
			fprintf(stderr, "\n"); \
			exit(1); \
		} \
	} while (0)

#define OK(call) CHECK((call) == GOMPI_OK, "%s", gompi_error())

/* FAILS checks that a call returns a code, and that the text of its error has a part. */
#define FAILS(call, code, part) \
	do { \
		int got = (call); \
		CHECK(got == (code), "returned %d, want %d: %s", got, code, gompi_error()); \
		CHECK(strstr(gompi_error(), part), "the error is \"%s\", want one with \"%s\"", gompi_error(), part); \
	} while (0)

static inline int rank_of(gompi_comm c) {
	int rank = -1;

	OK(gompi_rank(c, &rank));
	return rank;
}

static inline int size_of(gompi_comm c) {
	int size = -1;

	OK(gompi_size(c, &size));
	return size;
}

#endif
