//go:build linux && cgo

#define _GNU_SOURCE
#include "guest.h"
#include <errno.h>
#include <pthread.h>
#undef pthread_create
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>

int pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

enum {
	FIRST,           /* the thread that begins Go */
	MONITOR,         /* it is created next, and before all others */
	SLACK = 5000000, /* ns */
};

static atomic_int created;

/* What a thread begins with. */
struct begin {
	int number;
	void *(*start)(void *);
	void *arg;
};

/* begin is a thread of Go's. Go takes the mask that the first one has for all that it creates, but
 * for signals that its own runtime may need; so the program's signals go to the program's threads. */
static void *begin(void *v)
{
	struct begin b = *(struct begin *)v;
	free(v);
	if (b.number == FIRST) {
		sigset_t all;
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, NULL);
	}
	gompi_prepare_thread();
	return b.start(b.arg);
}

__attribute__((visibility("hidden"))) int gompi_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                                                               void *(*start)(void *), void *arg)
{
	struct begin *b = malloc(sizeof *b);
	if (!b)
		return EAGAIN;
	int slack = prctl(PR_GET_TIMERSLACK); /* a thread inherits it */
	/* before: the new thread may create the next at once */
	*b = (struct begin){atomic_fetch_add(&created, 1), start, arg};
	if (b->number == MONITOR)
		prctl(PR_SET_TIMERSLACK, SLACK);
	int err = pthread_create(thread, attr, begin, b);
	prctl(PR_SET_TIMERSLACK, slack);
	if (err) { /* Go tries again */
		atomic_fetch_sub(&created, 1);
		free(b);
	}
	return err;
}
