/* The function of signals.c, for libgompi.so and the faces of the MPI libraries. */
#ifndef GOMPI_SIGNALS_H
#define GOMPI_SIGNALS_H

/* Called before Go comes into the process. */
__attribute__((visibility("hidden"))) void gompi_signals(void);

#endif
