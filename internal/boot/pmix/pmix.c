//go:build linux && cgo

#include "pmix.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// Types and constants of the PMIx standard, as in all versions since 3. testdata/layout.c compares them with PMIx's header.
typedef struct {
	char job[256];
	uint32_t rank;
} process;

typedef struct {
	uint16_t type;
	union {
		bool flag;
		char *text;
		uint32_t number;
		void *widest[3];
	} is;
} value;

typedef struct {
	char key[512];
	uint32_t directives;
	value value;
} info;

enum { BOOL = 1, STRING = 3, INT = 6, INT32 = 9, UINT32 = 14 }; // types of values
enum { GLOBAL = 3 };                                            // scope: all ranks
enum { TYPE_MISMATCH = -18 };                                    // a status
#define WHOLE_JOB (UINT32_MAX - 1) // in place of a rank

#define FUNCTIONS(F) \
	F(int, PMIx_Init, (process *, info *, size_t)) \
	F(int, PMIx_Put, (uint8_t scope, const char *key, value *)) \
	F(int, PMIx_Commit, (void)) \
	F(int, PMIx_Fence, (const process *, size_t, const info *, size_t)) \
	F(int, PMIx_Get, (const process *, const char *key, const info *, size_t, value **)) \
	F(int, PMIx_Abort, (int code, const char *, process *, size_t)) \
	F(int, PMIx_Finalize, (const info *, size_t)) \
	F(const char *, PMIx_Error_string, (int))
#define DEFINE(result, name, args) static result(*p_##name) args;
FUNCTIONS(DEFINE)

static process self;

// gompi_pmix_load copies an error on its own thread, the only one that has it.
char *gompi_pmix_load(const char *library) {
	void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!lib) return strdup(dlerror());
#define LOOK_UP(result, name, args) \
	if (!(*(void **)&p_##name = dlsym(lib, #name))) return strdup(dlerror());
	FUNCTIONS(LOOK_UP)
	return NULL;
}

const char *gompi_pmix_text(int status) { return p_PMIx_Error_string(status); }

// The library's thread inherits the blocked signals, which are for threads that know Go.
int gompi_pmix_init(uint32_t *rank) {
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int status = p_PMIx_Init(&self, NULL, 0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	*rank = self.rank;
	return status;
}

static info yes(const char *key) {
	info i = {.value = {.type = BOOL, .is.flag = true}};
	strcpy(i.key, key);
	return i;
}

// gompi_pmix_number gets a number that the launcher has given this process, or the job.
int gompi_pmix_number(const char *key, int of_job, uint32_t *n) {
	process of = self;
	if (of_job) of.rank = WHOLE_JOB;
	info here = yes("pmix.optional");
	value *v = NULL;
	int status = p_PMIx_Get(&of, key, &here, 1, &v);
	if (status) return status;
	*n = v->is.number;
	if (v->type != UINT32 && v->type != INT && v->type != INT32) status = TYPE_MISMATCH;
	free(v);
	return status;
}

int gompi_pmix_put(const char *key, char *text) {
	value v = {.type = STRING, .is.text = text};
	int status = p_PMIx_Put(GLOBAL, key, &v);
	return status ? status : p_PMIx_Commit();
}

// gompi_pmix_fence waits for all ranks, and gives each the values of all.
int gompi_pmix_fence(void) {
	process all = self;
	all.rank = WHOLE_JOB;
	info collect = yes("pmix.collect");
	return p_PMIx_Fence(&all, 1, &collect, 1);
}

int gompi_pmix_get(const char *key, uint32_t rank, char **text) {
	process of = self;
	of.rank = rank;
	value *v = NULL;
	int status = p_PMIx_Get(&of, key, NULL, 0, &v);
	if (status) return status;
	if (v->type == STRING) *text = v->is.text;
	else status = TYPE_MISMATCH;
	free(v);
	return status;
}

int gompi_pmix_abort(int code, const char *reason) { return p_PMIx_Abort(code, reason, NULL, 0); }

int gompi_pmix_finalize(void) { return p_PMIx_Finalize(NULL, 0); }
