/* What the files of libgompi.so share. */
#ifndef GOMPI_SHIM_H
#define GOMPI_SHIM_H

#include "core.h"

#pragma GCC visibility push(hidden)

/* The functions of the core, once it is open. */
extern struct gompi_core core;

/* The text of the last error of each thread. */
extern _Thread_local char text[GOMPI_TEXT];

/* Sets the text of an error, and returns its code. */
__attribute__((format(printf, 2, 3))) int fail(int code, const char *format, ...);
int null_argument(const char *name, const char *want);

/* Every function but gompi_init begins with it. It returns an error unless the core is open. */
int enter(void);

#pragma GCC visibility pop

#endif
