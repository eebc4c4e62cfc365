// What Go calls of NCCL. See nccl.c.

#include "driver.h"

const char *gompi_nccl_load(const char *library);
int gompi_nccl_version(void);
const char *gompi_nccl_error_text(int code);
const char *gompi_nccl_last_error(uintptr_t comm);

enum { GOMPI_NCCL_ID = 128 };

gompi_result gompi_nccl_id(uintptr_t ctx, char *id);
gompi_result gompi_nccl_join(uintptr_t ctx, int size, char *id, int rank);
gompi_result gompi_nccl_state(uintptr_t ctx, uintptr_t comm);
gompi_result gompi_nccl_abort(uintptr_t ctx, uintptr_t comm);
gompi_result gompi_nccl_finalize(uintptr_t ctx, uintptr_t comm);
gompi_result gompi_nccl_destroy(uintptr_t ctx, uintptr_t comm);

// What gompi_nccl_collective does.
enum { GOMPI_ALL_REDUCE, GOMPI_REDUCE, GOMPI_BROADCAST, GOMPI_REDUCE_SCATTER, GOMPI_ALL_GATHER };

gompi_result gompi_nccl_collective(uintptr_t ctx, uintptr_t comm, int kind, uintptr_t send, uintptr_t recv, size_t count,
	int type, int op, int root, uintptr_t stream);

// A gompi_part is what goes to another rank and comes from it.
typedef struct {
	uintptr_t out, in;
	size_t out_size, in_size;
} gompi_part;

gompi_result gompi_nccl_exchange(uintptr_t ctx, uintptr_t comm, gompi_part *parts, int n, uintptr_t stream);
