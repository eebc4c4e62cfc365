/* The common declarations of the files of libgompi.so. */
#ifndef GOMPI_SHIM_H
#define GOMPI_SHIM_H

#include "core.h"

#pragma GCC visibility push(hidden)

/* The functions of the core, once it is open. */
extern struct gompi_core core;

/* The text of the last error of each thread. */
extern _Thread_local char text[GOMPI_TEXT];

/* enter begins a call, and returns an error unless the core is open. */
int enter(void);

#pragma GCC visibility pop

#endif
