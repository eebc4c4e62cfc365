//go:build linux && cgo

#include "../../internal/guest/guest.h"
#include "_cgo_export.h"

/* Each function has the thread be fit for Go first. */
#define ENTER(result, name, params, args) \
	static result enter_##name params \
	{ \
		gompi_prepare_thread(); \
		return gompi_mpi_##name args; \
	}
ENTER(int32_t, init, (void), ())
ENTER(int32_t, finalize, (void), ())
ENTER(int32_t, running, (void), ())
ENTER(int32_t, call, (int32_t function, gompi_word *arguments), (function, arguments))
ENTER(int32_t, length, (int32_t what, int32_t comm), (what, comm))
ENTER(int32_t, null, (int32_t function, int32_t object, const char *name), (function, object, (char *)name))
ENTER(int32_t, unsupported, (int32_t comm, const char *name), (comm, (char *)name))
ENTER(int32_t, set_integer, (int32_t kind, int32_t object, int32_t keyval, gompi_word value), (kind, object, keyval, value))
ENTER(int32_t, integer, (int32_t kind, int32_t object, int32_t keyval, gompi_word *value, int32_t *flag),
      (kind, object, keyval, value, flag))
ENTER(struct gompi_lease *, lease, (void), ())
ENTER(int32_t, stats, (int32_t tool, struct gompi_stats *s), (tool, s))
ENTER(void, use, (const struct gompi_face *face), ((struct gompi_face *)face))
ENTER(void, exit, (void), ())
ENTER(void, set_language, (int32_t kind, int32_t object, int32_t language), (kind, object, language))
ENTER(void, wake, (int32_t local), (local))

uint64_t gompi_mpi_fill(struct gompi_mpi_core *core, uint64_t number)
{
	if (number != GOMPI_SHARED_NUMBER)
		return GOMPI_SHARED_NUMBER;
	*core = (struct gompi_mpi_core){
		.use = enter_use,
		.init = enter_init,
		.finalize = enter_finalize,
		.running = enter_running,
		.exit = enter_exit,
		.call = enter_call,
		.length = enter_length,
		.null = enter_null,
		.unsupported = enter_unsupported,
		.set_language = enter_set_language,
		.set_integer = enter_set_integer,
		.integer = enter_integer,
		.lease = enter_lease,
		.wake = enter_wake,
		.stats = enter_stats,
	};
	return GOMPI_SHARED_NUMBER;
}
