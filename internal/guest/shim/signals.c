/*
 * Signal handlers of the program run on alternate stacks once Go is in the process, and not on a
 * goroutine's, which is small (internal/guest has the stacks): handlers get SA_ONSTACK. Those that are
 * there when Go comes get it from gompi_signals. Those that are set later are set by the functions
 * here, which programs and the libraries that they load find before glibc's, as this library stands
 * before glibc in their search order. A thread that has never entered Go has no alternate stack: its
 * handlers run where they always did.
 *
 * The functions that are made of sigaction in glibc are so here: glibc's do not call ours, and between
 * one of them and a second call a signal could come.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

#include "signals.h"

typedef int action(int, const struct sigaction *, struct sigaction *);

static _Atomic(action *) next; /* what would be called without this library */

static action *next_one(void)
{
	action *f = atomic_load(&next);
	if (!f) {
		*(void **)&f = dlsym(RTLD_NEXT, "sigaction");
		if (!f) /* glibc stands before this library */
			*(void **)&f = dlsym(RTLD_DEFAULT, "sigaction");
		atomic_store(&next, f);
	}
	return f;
}

/* Looked up at once, since a handler may set handlers, and look up nothing. */
__attribute__((constructor)) static void look_up(void) { next_one(); }

/* Whether an action calls a function on the stack that the thread has. */
static int is_off_stack(const struct sigaction *a)
{
	return a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN && !(a->sa_flags & SA_ONSTACK);
}

int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	if (act && is_off_stack(act)) {
		struct sigaction on_stack = *act;
		on_stack.sa_flags |= SA_ONSTACK;
		return next_one()(sig, &on_stack, old);
	}
	return next_one()(sig, act, old);
}

int __sigaction(int sig, const struct sigaction *act, struct sigaction *old) { return sigaction(sig, act, old); }

void gompi_signals(void)
{
	struct sigaction a;
	int sig;
	for (sig = 1; sig < NSIG; sig++)
		if (!next_one()(sig, NULL, &a) && is_off_stack(&a)) {
			a.sa_flags |= SA_ONSTACK;
			next_one()(sig, &a, NULL);
		}
}

/* The signals for which siginterrupt has asked that they interrupt. */
static _Atomic unsigned char interrupts[NSIG];

static __sighandler_t set(int sig, __sighandler_t handler, int flags, int blocked)
{
	struct sigaction act = {.sa_handler = handler, .sa_flags = flags}, old;
	if (handler == SIG_ERR) {
		errno = EINVAL;
		return SIG_ERR;
	}
	sigemptyset(&act.sa_mask);
	if (blocked && sigaddset(&act.sa_mask, sig))
		return SIG_ERR;
	return sigaction(sig, &act, &old) ? SIG_ERR : old.sa_handler;
}

__sighandler_t signal(int sig, __sighandler_t handler)
{
	int restarts = sig > 0 && sig < NSIG && !atomic_load(&interrupts[sig]);
	return set(sig, handler, restarts ? SA_RESTART : 0, 1);
}

__sighandler_t bsd_signal(int sig, __sighandler_t handler) { return signal(sig, handler); }
__sighandler_t ssignal(int sig, __sighandler_t handler) { return signal(sig, handler); }

__sighandler_t __sysv_signal(int sig, __sighandler_t handler)
{
	return set(sig, handler, SA_RESETHAND | SA_NODEFER, 0);
}

__sighandler_t sysv_signal(int sig, __sighandler_t handler) { return __sysv_signal(sig, handler); }

int siginterrupt(int sig, int interrupt)
{
	struct sigaction a;
	if (sigaction(sig, NULL, &a))
		return -1;
	atomic_store(&interrupts[sig], interrupt != 0);
	a.sa_flags = interrupt ? a.sa_flags & ~SA_RESTART : a.sa_flags | SA_RESTART;
	return sigaction(sig, &a, NULL);
}

__sighandler_t sigset(int sig, __sighandler_t disposition)
{
	sigset_t one, before;
	struct sigaction old;
	__sighandler_t was;
	sigemptyset(&one);
	if (sigaddset(&one, sig))
		return SIG_ERR;
	if (disposition == SIG_HOLD) {
		if (sigprocmask(SIG_BLOCK, &one, &before) || sigaction(sig, NULL, &old))
			return SIG_ERR;
		return sigismember(&before, sig) ? SIG_HOLD : old.sa_handler;
	}
	if ((was = set(sig, disposition, 0, 0)) == SIG_ERR || sigprocmask(SIG_UNBLOCK, &one, &before))
		return SIG_ERR;
	return sigismember(&before, sig) ? SIG_HOLD : was;
}
