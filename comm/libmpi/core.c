//go:build linux && cgo

#include "_cgo_export.h"

void gompi_mpi_core(struct gompi_mpi_core *core)
{
	*core = (struct gompi_mpi_core){
		.use = (void (*)(const struct gompi_face *))gompi_mpi_use,
		.init = gompi_mpi_init,
		.finalize = gompi_mpi_finalize,
		.running = gompi_mpi_running,
		.exit = gompi_mpi_exit,
		.call = gompi_mpi_call,
		.length = gompi_mpi_length,
		.null = (int32_t (*)(int32_t, int32_t, const char *))gompi_mpi_null,
		.unsupported = (int32_t (*)(const char *))gompi_mpi_unsupported,
		.set_language = gompi_mpi_set_language,
		.set_integer = gompi_mpi_set_integer,
		.integer = gompi_mpi_integer,
		.lease = (struct gompi_lease *(*)(void))gompi_mpi_lease,
		.wake = gompi_mpi_wake,
		.stats = gompi_mpi_stats,
	};
}
