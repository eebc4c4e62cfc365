/* Signal handlers of the program run on alternate stacks once Go is in the process, and not on a goroutine's, which is
 * small (internal/guest has the stacks): handlers get SA_ONSTACK. Those that are there when Go comes get it from
 * gompi_signals. Those that are set later are set by the functions here, which programs and the libraries that they load
 * find before glibc's, as this library stands before glibc in their search order. A thread that has never entered Go has
 * no alternate stack: its handlers run where they always did.
 *
 * The functions that are made of sigaction in glibc are so here: glibc's do not call ours, and between one of them and a
 * second call a signal could come. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

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

#ifdef __x86_64__
/* The record of a crash: where the copy of the stack begins, the registers, that copy, the namespace of
 * files, the program, the mappings. gompirun names its file, and finds the frames there (mpirun/internal/proc) when the
 * signal has ended the process as ever. Handlers of the program replace this one, and Go's call it for C
 * alone. libgfortran's, which print a backtrace and end the process, come next, without Go's on the stack. */
enum { STACK = 256 << 10, MOST = 64 << 20 };
static struct {
	char mark[8];
	greg_t from, registers[17];
} record = {.mark = "crash 1"};
static char file_name[100];
static pid_t rank; /* whose children write nothing */
static struct sigaction before[NSIG];

static void write_record(const greg_t *registers)
{
	char text[4096];
	int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	int file = open(file_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ssize_t n = readlink("/proc/self/ns/mnt", text, 100), exe;
	if (n > 0 && (exe = readlink("/proc/self/exe", text + n, sizeof text - 101)) > 0)
		text[n += exe] = '\n', n++;
	greg_t top = record.from = registers[REG_RSP];
	while (pwrite(file, (void *)record.from, STACK, sizeof record) < 0) { /* the stack has overflowed */
		if (errno != EFAULT || record.from - top > MOST)
			return;
		record.from = (record.from | 4095) + 1;
	}
	memcpy(record.registers, registers, sizeof record.registers);
	if (write(file, &record, sizeof record) > 0 && lseek(file, STACK, SEEK_CUR) > 0)
		while (n > 0 && write(file, text, (size_t)n) == n)
			n = read(maps, text, sizeof text);
}

static void crashed(int sig, siginfo_t *info, void *context)
{
	static atomic_flag begun = ATOMIC_FLAG_INIT;
	if (getpid() == rank && !atomic_flag_test_and_set(&begun))
		write_record(((ucontext_t *)context)->uc_mcontext.gregs);
	else if (getpid() == rank)
		usleep(300000); /* another thread writes */
	next_one()(sig, &before[sig], NULL);
	if (info->si_code <= 0) /* it was sent, as by abort; else the instruction runs again */
		raise(sig);
}

static void record_crashes(void)
{
	struct sigaction act = {.sa_sigaction = crashed, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	const char *file = getenv("TORCHELASTIC_ERROR_FILE");
	Dl_info at;
	if (!file || strncmp(file, "/dev/shm/gompi-error-", 21) || strlen(file) >= sizeof file_name) /* it is another's */
		return;
	strcpy(file_name, file);
	rank = getpid();
	sigfillset(&act.sa_mask);
	for (const int *sig = (const int[]){SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, 0}; *sig; sig++)
		if (!next_one()(*sig, NULL, &before[*sig]) && (before[*sig].sa_handler == SIG_DFL ||
		    (dladdr((void *)before[*sig].sa_handler, &at) && strstr(at.dli_fname, "/libgfortran."))))
			next_one()(*sig, &act, NULL);
}
#else
static void record_crashes(void) {}
#endif

void gompi_signals(void)
{
	struct sigaction a;
	int sig;
	for (sig = 1; sig < NSIG; sig++)
		if (!next_one()(sig, NULL, &a) && is_off_stack(&a)) {
			a.sa_flags |= SA_ONSTACK;
			next_one()(sig, &a, NULL);
		}
	record_crashes();
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
