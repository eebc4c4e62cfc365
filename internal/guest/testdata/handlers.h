/* Checks of how handlers of a program run beside Go: handlers_before is called before the library's init, and
 * handlers_after after it, with a call of the library. */
#include <dirent.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* of old functions, which programs still call */

#define WANT(x) do { if (!(x)) { fprintf(stderr, "handlers.h, line %d: %s\n", __LINE__, #x); _exit(1); } } while (0)

static volatile sig_atomic_t caught, on_stack;
static volatile size_t stack_size;
static pthread_t first; /* of the program */

static void note(int sig)
{
	stack_t now;
	(void)sig;
	caught++;
	sigaltstack(NULL, &now);
	on_stack = (now.ss_flags & SS_ONSTACK) != 0;
	stack_size = now.ss_size;
}

static int is_noted(int sig)
{
	caught = on_stack = 0;
	raise(sig);
	return caught == 1 && on_stack && stack_size >= 1 << 20;
}

/* The functions that set a handler, and whether it stays and is blocked meanwhile. */
typedef __sighandler_t setter(int, __sighandler_t);
setter bsd_signal, ssignal, sysv_signal, __sysv_signal, sigset;
static __sighandler_t by_sigaction(int sig, __sighandler_t handler)
{
	struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
	sigemptyset(&a.sa_mask);
	WANT(sigaction(sig, &a, &old) == 0);
	return old.sa_handler;
}
static __sighandler_t by_lookup(int sig, __sighandler_t handler)
{
	setter *found;
	*(void **)&found = dlsym(RTLD_DEFAULT, "signal");
	return found(sig, handler);
}
static const struct { setter *set; unsigned flags; } setters[] = {
	{by_sigaction, SA_RESTART}, {by_lookup, SA_RESTART}, {signal, SA_RESTART}, {bsd_signal, SA_RESTART}, {ssignal, SA_RESTART},
	{sysv_signal, SA_RESETHAND | SA_NODEFER}, {__sysv_signal, SA_RESETHAND | SA_NODEFER}, {sigset, 0},
};
enum { SETTERS = sizeof setters / sizeof *setters };

static void handlers_before(void)
{
	first = pthread_self();
	for (int i = 0; i < SETTERS; i++)
		WANT(setters[i].set(SIGRTMIN + i, note) == SIG_DFL);
	by_sigaction(SIGTSTP, note);
}

static void check_setters(void)
{
	struct sigaction now;
	WANT(is_noted(SIGTSTP));
	for (int i = 0; i < SETTERS; i++) {
		WANT(is_noted(SIGRTMIN + i)); /* set before */
		signal(SIGUSR1, SIG_DFL);
		WANT(setters[i].set(SIGUSR1, note) == SIG_DFL);
		WANT(sigaction(SIGUSR1, NULL, &now) == 0 && now.sa_handler == note);
		WANT(((unsigned)now.sa_flags & (SA_RESTART | SA_RESETHAND | SA_NODEFER)) == setters[i].flags);
		WANT(is_noted(SIGUSR1));
		sigaction(SIGUSR1, NULL, &now);
		WANT(now.sa_handler == (setters[i].flags & SA_RESETHAND ? SIG_DFL : note));
	}
	WANT(signal(SIGUSR1, SIG_ERR) == SIG_ERR && signal(NSIG + 1, note) == SIG_ERR);
	signal(SIGUSR1, note);
	WANT(siginterrupt(SIGUSR1, 1) == 0 && sigaction(SIGUSR1, NULL, &now) == 0 && !(now.sa_flags & SA_RESTART));
	WANT(signal(SIGUSR1, note) == note && sigaction(SIGUSR1, NULL, &now) == 0 && !(now.sa_flags & SA_RESTART));
	WANT(siginterrupt(SIGUSR1, 0) == 0 && sigaction(SIGUSR1, NULL, &now) == 0 && now.sa_flags & SA_RESTART);
	WANT(sigset(SIGUSR1, SIG_HOLD) == note && sigset(SIGUSR1, SIG_HOLD) == SIG_HOLD);
	caught = 0;
	raise(SIGUSR1);
	WANT(caught == 0);
	WANT(sigset(SIGUSR1, note) == SIG_HOLD && caught == 1);
	signal(SIGUSR1, SIG_IGN);
	WANT(signal(SIGUSR1, SIG_DFL) == SIG_IGN);
}

/* All threads but this one, the program's only one, block its signals. */
static void check_masks(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	int open = 0, all = 0;
	while ((e = readdir(d))) {
		char path[300], line[200];
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
		FILE *f = fopen(path, "r");
		while (f && fgets(line, sizeof line, f)) {
			unsigned long long blocked;
			if (sscanf(line, "SigBlk: %llx", &blocked) == 1) {
				all++;
				open += !(blocked >> (SIGUSR1 - 1) & 1) || !(blocked >> (SIGTERM - 1) & 1);
			}
		}
		if (f)
			fclose(f);
	}
	closedir(d);
	WANT(open == 1 && all > 1);
}

static void (*library)(void);

static void *other(void *unused)
{
	(void)unused;
	caught = on_stack = 0;
	raise(SIGUSR2);
	WANT(caught == 1 && !on_stack); /* it was never in Go */
	library();
	WANT(is_noted(SIGUSR2));
	return NULL;
}

static volatile long ticks;

static void tick(int sig)
{
	volatile char room[200000]; /* more than Go's stack for handlers */
	void *frames[64];
	(void)sig;
	memset((char *)room, 0x5a, sizeof room);
	WANT(backtrace(frames, 64) > 1); /* as profilers do, through Go's frames, too */
	ticks++;
}

static void handlers_after(void (*call)(void))
{
	pthread_t t;
	struct itimerval on = {{0, 500}, {0, 500}}, off = {{0, 0}, {0, 0}};
	void *frame;
	library = call;
	backtrace(&frame, 1); /* it loads a library the first time */
	check_setters();
	signal(SIGUSR2, note);
	check_masks();
	for (int i = 0; i < 20; i++) { /* a thread's stack goes with it */
		pthread_create(&t, NULL, other, NULL);
		pthread_join(t, NULL);
	}
	signal(SIGPROF, tick); /* on all threads: Go's do not block it */
	setitimer(ITIMER_PROF, &on, NULL);
	while (ticks < 300)
		call();
	setitimer(ITIMER_PROF, &off, NULL);
}
