/* Included before everything else (gcc -include) where the C of Go's runtime is compiled for a library:
 * its threads are created by threads.c. */
#ifndef GOMPI_GUEST_H
#define GOMPI_GUEST_H
#if defined(__linux__) && !defined(__ASSEMBLER__)
#define pthread_create gompi_pthread_create

/* Whether this thread has a stack for signal handlers, as it must before it enters Go: stack.c. */
extern __thread char gompi_has_stack __attribute__((visibility("hidden"), tls_model("initial-exec")));
__attribute__((visibility("hidden"))) void gompi_give_stack(void);
static inline __attribute__((unused)) void gompi_prepare_thread(void)
{
	if (__builtin_expect(!gompi_has_stack, 0))
		gompi_give_stack();
}
#endif
#endif
