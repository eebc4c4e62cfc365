//go:build linux && cgo

#include "../../../internal/guest/guest.h"
#include "_cgo_export.h"

static void prepare_thread(void) { gompi_prepare_thread(); }

static int64_t (*ask_check)(int64_t milliseconds);

int64_t gompi_core_ask(int64_t milliseconds) { return ask_check(milliseconds); }

const char *gompi_core_fill(struct gompi_core *table, int64_t (*ask)(int64_t milliseconds)) {
	ask_check = ask;
	gompi_prepare_thread(); /* the version is Go's */
	*table = (struct gompi_core){
		.prepare_thread = prepare_thread,
		.init = gompi_core_init,
		.finalize = gompi_core_finalize,
		.abort = gompi_core_abort,
		.rank = gompi_core_rank,
		.size = gompi_core_size,
		.set_timeout = gompi_core_set_timeout,
		.set_site = gompi_core_set_site,
		.place = gompi_core_place,
		.create_group = gompi_core_create_group,
		.dup = gompi_core_dup,
		.free = gompi_core_free,
		.hide = gompi_core_hide,
		.revoke = gompi_core_revoke,
		.alloc_local = gompi_core_alloc_local,
		.dealloc_local = gompi_core_dealloc_local,
		.share = gompi_core_share,
		.send = gompi_core_send,
		.recv = gompi_core_recv,
		.isend = gompi_core_isend,
		.irecv = gompi_core_irecv,
		.wait = gompi_core_wait,
		.test = gompi_core_test,
		.probe = gompi_core_probe,
		.iprobe = gompi_core_iprobe,
		.collective = gompi_core_collective,
	};
	return gompi_core_version();
}
