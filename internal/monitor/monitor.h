/* Included before everything else (gcc -include) where the C of Go's runtime is compiled for a library:
 * its threads are created by monitor.c. */
#if defined(__linux__) && !defined(__ASSEMBLER__)
#define pthread_create gompi_pthread_create
#endif
