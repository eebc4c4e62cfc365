//go:build linux && cgo

#include "monitor.h"
#include <pthread.h>
#undef pthread_create
#include <stdatomic.h>
#include <sys/prctl.h>

int pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

enum {
	MONITOR = 1,     /* it is created after the thread that begins Go, and before all others */
	SLACK = 5000000, /* ns */
};

static atomic_int created;

__attribute__((visibility("hidden"))) int gompi_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                                                               void *(*start)(void *), void *arg)
{
	int slack = prctl(PR_GET_TIMERSLACK); /* a thread inherits it */
	if (atomic_fetch_add(&created, 1) == MONITOR) /* before: the new thread may create the next at once */
		prctl(PR_SET_TIMERSLACK, SLACK);
	int err = pthread_create(thread, attr, start, arg);
	prctl(PR_SET_TIMERSLACK, slack);
	if (err) /* Go tries again */
		atomic_fetch_sub(&created, 1);
	return err;
}
