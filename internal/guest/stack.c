//go:build linux && cgo

#define _GNU_SOURCE
#include "guest.h"
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

/* Room for a handler that unwinds, as handlers were written for a thread's stack. Only touched pages are memory. */
enum { STACK = 1 << 20 };

__thread char gompi_has_stack;

static pthread_key_t stacks; /* the stack of each thread that has one of ours */
static int kept;             /* whether there is the key */

/* take_back is called when a thread ends. No handler runs in what is left of it. */
static void take_back(void *stack)
{
	sigset_t all;
	stack_t now, none = {.ss_flags = SS_DISABLE};
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	if (sigaltstack(NULL, &now) || now.ss_sp != stack || sigaltstack(&none, NULL))
		return; /* the program has changed it, and may use this one */
	size_t guard = (size_t)sysconf(_SC_PAGESIZE);
	munmap((char *)stack - guard, STACK + guard);
}

static void make_key(void) { kept = pthread_key_create(&stacks, take_back) == 0; }

/* gompi_give_stack gives this thread an alternate stack for handlers, if it has none. Go takes it for
 * its own handlers, too; it would make one of 32 KiB. Without memory that remains so. */
void gompi_give_stack(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	stack_t now;
	gompi_has_stack = 1;
	pthread_once(&once, make_key);
	if (!kept || sigaltstack(NULL, &now) || !(now.ss_flags & SS_DISABLE))
		return;
	size_t guard = (size_t)sysconf(_SC_PAGESIZE);
	char *memory = mmap(NULL, STACK + guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (memory == MAP_FAILED)
		return;
	stack_t stack = {.ss_sp = memory + guard, .ss_size = STACK};
	if (mprotect(stack.ss_sp, STACK, PROT_READ | PROT_WRITE) || sigaltstack(&stack, NULL)) {
		munmap(memory, STACK + guard);
		return;
	}
	pthread_setspecific(stacks, stack.ss_sp);
}
