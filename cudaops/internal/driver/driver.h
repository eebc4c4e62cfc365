// What Go calls of the CUDA driver. See driver.c.

#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct {
	int code;         // CUresult, 0 for success
	const char *call; // the function that gave it
	uintptr_t value;  // what was asked for
} gompi_result;

typedef struct {
	char name[128], bus[32];
	size_t memory;
	int processors, major, minor;
} gompi_device;

typedef struct {
	int kind; // CU_MEMORYTYPE: 0 unknown to CUDA, 1 host, 2 device
	int managed, device;
} gompi_place;

const char *gompi_load(const char *library);
int gompi_loaded(void);
const char *gompi_error_name(int code);
const char *gompi_error_text(int code);

gompi_result gompi_init(void);

// gompi_within calls f in a context.
gompi_result gompi_within(uintptr_t ctx, gompi_result (*f)(void *), void *arg);

gompi_result gompi_describe(int ordinal, gompi_device *d);
gompi_result gompi_retain(int ordinal);
gompi_result gompi_memory(uintptr_t ctx, size_t *available, size_t *total);
gompi_result gompi_place_of(uintptr_t addr, gompi_place *p);

gompi_result gompi_alloc(uintptr_t ctx, size_t n, uintptr_t stream);
gompi_result gompi_free(uintptr_t ctx, uintptr_t addr);
gompi_result gompi_alloc_host(uintptr_t ctx, size_t n, void **p);
gompi_result gompi_free_host(uintptr_t ctx, char *p);

gompi_result gompi_stream(uintptr_t ctx);
gompi_result gompi_stream_close(uintptr_t ctx, uintptr_t stream);
gompi_result gompi_stream_sync(uintptr_t ctx, uintptr_t stream, uintptr_t event);
gompi_result gompi_stream_wait(uintptr_t ctx, uintptr_t stream, uintptr_t event);
gompi_result gompi_event(uintptr_t ctx);
gompi_result gompi_event_close(uintptr_t ctx, uintptr_t event);
gompi_result gompi_event_record(uintptr_t ctx, uintptr_t event, uintptr_t stream);
gompi_result gompi_event_done(uintptr_t ctx, uintptr_t event);
gompi_result gompi_event_sync(uintptr_t ctx, uintptr_t event);

// Where a host pointer is not null it stands for the address. With an event, which
// no other thread uses, the call returns when the work is done.
gompi_result gompi_copy(uintptr_t ctx, uintptr_t dst, char *host_dst, uintptr_t src, char *host_src, size_t n,
	uintptr_t stream, uintptr_t event);
gompi_result gompi_clear(uintptr_t ctx, uintptr_t addr, size_t n, uintptr_t stream);
gompi_result gompi_launch(uintptr_t ctx, uintptr_t kernel, unsigned grid, unsigned block, char *args,
	uintptr_t stream);

gompi_result gompi_module(uintptr_t ctx, char *text, char *log, size_t log_size);
gompi_result gompi_module_close(uintptr_t ctx, uintptr_t module);
gompi_result gompi_kernel(uintptr_t ctx, uintptr_t module, char *name);
