// Compares the types and constants of pmix.c with the header of the PMIx that is installed: it
// compiles, or it does not.
#include <pmix.h>
#include <stddef.h>

#include "../pmix.c"

#define SAME(a, b) _Static_assert((long long)(a) == (long long)(b), #a " is not " #b)
#define FIELD(ours, field, theirs, name) \
	SAME(offsetof(ours, field), offsetof(theirs, name)); \
	SAME(sizeof(((ours *)0)->field), sizeof(((theirs *)0)->name))

FIELD(process, job, pmix_proc_t, nspace);
FIELD(process, rank, pmix_proc_t, rank);
SAME(sizeof(process), sizeof(pmix_proc_t));
FIELD(value, type, pmix_value_t, type);
FIELD(value, is, pmix_value_t, data);
FIELD(value, is.flag, pmix_value_t, data.flag);
FIELD(value, is.text, pmix_value_t, data.string);
FIELD(value, is.number, pmix_value_t, data.uint32);
SAME(sizeof(value), sizeof(pmix_value_t));
FIELD(info, key, pmix_info_t, key);
FIELD(info, directives, pmix_info_t, flags);
FIELD(info, value, pmix_info_t, value);
SAME(sizeof(info), sizeof(pmix_info_t));
SAME(BOOL, PMIX_BOOL);
SAME(STRING, PMIX_STRING);
SAME(INT, PMIX_INT);
SAME(INT32, PMIX_INT32);
SAME(UINT32, PMIX_UINT32);
SAME(GLOBAL, PMIX_GLOBAL);
SAME(TYPE_MISMATCH, PMIX_ERR_TYPE_MISMATCH);
SAME(WHOLE_JOB, PMIX_RANK_WILDCARD);
SAME(sizeof(pmix_status_t), sizeof(int));
SAME(sizeof(pmix_scope_t), sizeof(uint8_t));
