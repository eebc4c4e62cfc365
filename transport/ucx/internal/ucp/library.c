//go:build linux && cgo

// libucp, opened at run time. Nothing of UCX is needed to build.

#include "shim.h"
#include "abi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFINE(result, name, args) result(*p_##name) args;
ABI_FUNCTIONS(DEFINE)

const char *gompi_ucp_text(int status) { return p_ucs_status_string((abi_status)status); }

// UCX reads these when it is loaded. A Go process must not get its signal handlers or its hooks in
// libc's malloc, and its log must not go to the program's standard output.
static const struct { const char *name, *value; int always; } settings[] = {
	{"UCX_ERROR_SIGNALS", "", 1}, {"UCX_HANDLE_ERRORS", "none", 1}, {"UCX_DEBUG_SIGNO", "0", 1},
	{"UCX_MEM_EVENTS", "n", 1}, {"UCX_VFS_ENABLE", "n", 0}, {"UCX_LOG_FILE", "stderr", 0},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static void *load(const char *library) {
	char *before[SETTINGS];
	for (int i = 0; i < SETTINGS; i++) {
		char *old = getenv(settings[i].name);
		before[i] = old ? strdup(old) : NULL;
		setenv(settings[i].name, settings[i].value, settings[i].always);
	}
	void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	for (int i = 0; i < SETTINGS; i++) {
		if (before[i]) setenv(settings[i].name, before[i], 1);
		else unsetenv(settings[i].name);
		free(before[i]);
	}
	return lib;
}

// gompi_ucp_foreign returns 1 if something else in this process has loaded UCX, with its hooks in
// libc's malloc: it would keep registrations of memory that Go gives back.
int gompi_ucp_foreign(void) {
	void *lib = dlopen("libucs.so.0", RTLD_NOW | RTLD_NOLOAD);
	if (lib) dlclose(lib);
	return lib != NULL;
}

// gompi_ucp_load opens the library and returns an error, or NULL.
const char *gompi_ucp_load(const char *library) {
	static char wrong[512];
	void *lib = load(library);
	if (!lib) {
		snprintf(wrong, sizeof wrong, "%s", dlerror());
		return wrong;
	}
#define CHECK(result, name, args) \
	if (!dlsym(lib, #name)) { \
		snprintf(wrong, sizeof wrong, "%s has no function %s: want UCX %d.%d or newer", library, #name, ABI_MAJOR, ABI_MINOR); \
		return wrong; \
	}
	ABI_FUNCTIONS(CHECK) // all, before one of a library that is in use is replaced
#define LOOK_UP(result, name, args) *(void **)&p_##name = dlsym(lib, #name);
	ABI_FUNCTIONS(LOOK_UP)
	unsigned major, minor, release;
	p_ucp_get_version(&major, &minor, &release);
	if (major != ABI_MAJOR || minor < ABI_MINOR) {
		snprintf(wrong, sizeof wrong, "%s is of UCX %u.%u.%u: want %d.%d or newer", library, major, minor, release, ABI_MAJOR, ABI_MINOR);
		return wrong;
	}
	return NULL;
}
