// The opening of a library at run time, and its functions by a table of names: a macro that lists X(name, arguments).
#pragma once

#include <dlfcn.h>
#include <stdio.h>

// DECLARE is a function that a library has.
#define DECLARE(name, args) static int(*p_##name) args;

// OPEN begins a function that returns what is wrong with a library, or NULL: from then on it is lib.
#define OPEN(library) \
	static char missing[512]; \
	void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL); \
	if (!lib) { \
		snprintf(missing, sizeof missing, "%s", dlerror()); \
		return missing; \
	}

// REQUIRE takes a function without which the library is of no use.
#define REQUIRE(name, args) \
	if (!(*(void **)&p_##name = dlsym(lib, #name))) { \
		snprintf(missing, sizeof missing, "%s has no function %s", library, #name); \
		return missing; \
	}
