/* What signals.c has for libgompi.so and for the faces of MPI's libraries. */
#ifndef GOMPI_SIGNALS_H
#define GOMPI_SIGNALS_H

/* Called before Go comes into the process. */
__attribute__((visibility("hidden"))) void gompi_signals(void);

#endif
