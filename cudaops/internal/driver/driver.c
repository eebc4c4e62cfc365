//go:build linux && cgo && !gompi_nocuda

// The CUDA driver, opened at run time. Nothing of CUDA is needed to build: what is declared here has had the same
// binary form since CUDA 4.
//
// The current context belongs to a thread, and a goroutine may change threads between two calls. So each function makes
// its context current, works, and puts back what was current before, which may be another library's.

#include "driver.h"
#include "library.h"

#include <string.h>

typedef void *handle;

// The plain names of some functions are older, 32-bit forms: these are today's.
#define REQUIRED(X) \
	X(cuInit, (unsigned flags)) \
	X(cuGetErrorName, (int code, const char **name)) \
	X(cuGetErrorString, (int code, const char **text)) \
	X(cuDeviceGetCount, (int *count)) \
	X(cuDeviceGet, (int *device, int ordinal)) \
	X(cuDeviceGetName, (char *name, int size, int device)) \
	X(cuDeviceGetAttribute, (int *value, int attribute, int device)) \
	X(cuDeviceGetPCIBusId, (char *bus, int size, int device)) \
	X(cuDeviceTotalMem_v2, (size_t *bytes, int device)) \
	X(cuDevicePrimaryCtxRetain, (handle *ctx, int device)) \
	X(cuCtxGetCurrent, (handle *ctx)) \
	X(cuCtxSetCurrent, (handle ctx)) \
	X(cuMemAlloc_v2, (uintptr_t *addr, size_t n)) \
	X(cuMemFree_v2, (uintptr_t addr)) \
	X(cuMemAllocHost_v2, (void **p, size_t n)) \
	X(cuMemFreeHost, (void *p)) \
	X(cuMemGetInfo_v2, (size_t *available, size_t *total)) \
	X(cuMemcpyAsync, (uintptr_t dst, uintptr_t src, size_t n, handle stream)) \
	X(cuMemsetD8Async, (uintptr_t dst, unsigned char value, size_t n, handle stream)) \
	X(cuStreamCreate, (handle *stream, unsigned flags)) \
	X(cuStreamDestroy_v2, (handle stream)) \
	X(cuStreamSynchronize, (handle stream)) \
	X(cuStreamWaitEvent, (handle stream, handle event, unsigned flags)) \
	X(cuEventCreate, (handle *event, unsigned flags)) \
	X(cuEventDestroy_v2, (handle event)) \
	X(cuEventRecord, (handle event, handle stream)) \
	X(cuEventQuery, (handle event)) \
	X(cuEventSynchronize, (handle event)) \
	X(cuModuleLoadDataEx, (handle *module, const void *text, unsigned n, int *options, void **values)) \
	X(cuModuleUnload, (handle module)) \
	X(cuModuleGetFunction, (handle *kernel, handle module, const char *name)) \
	X(cuLaunchKernel, (handle kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, \
		unsigned shared, handle stream, void **params, void **extra)) \
	X(cuPointerGetAttributes, (unsigned n, int *attributes, void **values, uintptr_t addr))

REQUIRED(DECLARE)

enum { // of cuda.h
	NOT_FOUND = 500,
	NOT_READY = 600,
	NON_BLOCKING = 1,               // stream: does not wait for stream 0
	BLOCKING_SYNC = 1, NO_TIMING = 2, // event
	JIT_ERROR_LOG = 5, JIT_ERROR_LOG_SIZE = 6,
	ATTR_PROCESSORS = 16, ATTR_MAJOR = 75, ATTR_MINOR = 76,
	POINTER_KIND = 2, POINTER_MANAGED = 8, POINTER_DEVICE = 9,
};

static int opened;

// gompi_load opens the library and returns what is wrong, or NULL.
const char *gompi_load(const char *library) {
	OPEN(library)
	REQUIRED(REQUIRE)
	__atomic_store_n(&opened, 1, __ATOMIC_RELEASE);
	return NULL;
}

// gompi_loaded tells whether anything in this process has opened the driver.
int gompi_loaded(void) {
	if (__atomic_load_n(&opened, __ATOMIC_ACQUIRE)) return 1;
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	if (lib) dlclose(lib);
	return lib != NULL;
}

const char *gompi_error_name(int code) {
	const char *s = NULL;
	return p_cuGetErrorName(code, &s) || !s ? "unknown error" : s;
}

const char *gompi_error_text(int code) {
	const char *s = NULL;
	return p_cuGetErrorString(code, &s) || !s ? "no description" : s;
}

// TRY calls a driver function and leaves with its error.
#define TRY(name, ...) \
	do { \
		r.call = #name; \
		r.code = p_##name ? p_##name(__VA_ARGS__) : NOT_FOUND; \
		if (r.code) goto out; \
	} while (0)

// ENTER and LEAVE stand around what works in a context.
#define ENTER(ctx) \
	gompi_result r = {0}; \
	handle before = NULL; \
	int entered = 0; \
	TRY(cuCtxGetCurrent, &before); \
	if (before != (handle)(ctx)) { \
		TRY(cuCtxSetCurrent, (handle)(ctx)); \
		entered = 1; \
	}
#define LEAVE \
	out: \
	if (entered) p_cuCtxSetCurrent(before); \
	return r;

gompi_result gompi_within(uintptr_t ctx, gompi_result (*f)(void *), void *arg) {
	ENTER(ctx)
	r = f(arg);
	LEAVE
}

gompi_result gompi_init(void) {
	gompi_result r = {0};
	int count = 0;
	TRY(cuInit, 0);
	TRY(cuDeviceGetCount, &count);
	r.value = count;
out:
	return r;
}

gompi_result gompi_describe(int ordinal, gompi_device *d) {
	gompi_result r = {0};
	int device;
	TRY(cuDeviceGet, &device, ordinal);
	TRY(cuDeviceGetName, d->name, sizeof d->name, device);
	TRY(cuDeviceGetPCIBusId, d->bus, sizeof d->bus, device);
	TRY(cuDeviceTotalMem_v2, &d->memory, device);
	TRY(cuDeviceGetAttribute, &d->processors, ATTR_PROCESSORS, device);
	TRY(cuDeviceGetAttribute, &d->major, ATTR_MAJOR, device);
	TRY(cuDeviceGetAttribute, &d->minor, ATTR_MINOR, device);
out:
	return r;
}

gompi_result gompi_retain(int ordinal) {
	gompi_result r = {0};
	int device;
	handle ctx = NULL;
	TRY(cuDeviceGet, &device, ordinal);
	TRY(cuDevicePrimaryCtxRetain, &ctx, device);
	r.value = (uintptr_t)ctx;
out:
	return r;
}

gompi_result gompi_memory(uintptr_t ctx, size_t *available, size_t *total) {
	ENTER(ctx)
	TRY(cuMemGetInfo_v2, available, total);
	LEAVE
}

gompi_result gompi_place_of(uintptr_t addr, gompi_place *p) {
	gompi_result r = {0};
	int attributes[] = {POINTER_KIND, POINTER_MANAGED, POINTER_DEVICE};
	void *values[] = {&p->kind, &p->managed, &p->device};
	TRY(cuPointerGetAttributes, 3, attributes, values, addr);
out:
	return r;
}

// ---- memory

// gompi_alloc returns zeroed device memory.
gompi_result gompi_alloc(uintptr_t ctx, size_t n, uintptr_t stream) {
	uintptr_t addr = 0;
	ENTER(ctx)
	TRY(cuMemAlloc_v2, &addr, n);
	TRY(cuMemsetD8Async, addr, 0, n, (handle)stream);
	TRY(cuStreamSynchronize, (handle)stream);
	r.value = addr;
	addr = 0;
out:
	if (addr) p_cuMemFree_v2(addr);
	if (entered) p_cuCtxSetCurrent(before);
	return r;
}

gompi_result gompi_free(uintptr_t ctx, uintptr_t addr) {
	ENTER(ctx)
	TRY(cuMemFree_v2, addr);
	LEAVE
}

gompi_result gompi_alloc_host(uintptr_t ctx, size_t n, void **p) {
	ENTER(ctx)
	TRY(cuMemAllocHost_v2, p, n);
	memset(*p, 0, n);
	LEAVE
}

gompi_result gompi_free_host(uintptr_t ctx, char *p) {
	ENTER(ctx)
	TRY(cuMemFreeHost, p);
	LEAVE
}

// ---- streams and events

gompi_result gompi_stream(uintptr_t ctx) {
	handle stream = NULL;
	ENTER(ctx)
	TRY(cuStreamCreate, &stream, NON_BLOCKING);
	r.value = (uintptr_t)stream;
	LEAVE
}

gompi_result gompi_stream_close(uintptr_t ctx, uintptr_t stream) {
	ENTER(ctx)
	TRY(cuStreamDestroy_v2, (handle)stream);
	LEAVE
}

gompi_result gompi_stream_wait(uintptr_t ctx, uintptr_t stream, uintptr_t event) {
	ENTER(ctx)
	TRY(cuStreamWaitEvent, (handle)stream, (handle)event, 0);
	LEAVE
}

gompi_result gompi_event(uintptr_t ctx) {
	handle event = NULL;
	ENTER(ctx)
	TRY(cuEventCreate, &event, BLOCKING_SYNC | NO_TIMING);
	r.value = (uintptr_t)event;
	LEAVE
}

gompi_result gompi_event_close(uintptr_t ctx, uintptr_t event) {
	ENTER(ctx)
	TRY(cuEventDestroy_v2, (handle)event);
	LEAVE
}

gompi_result gompi_event_record(uintptr_t ctx, uintptr_t event, uintptr_t stream) {
	ENTER(ctx)
	TRY(cuEventRecord, (handle)event, (handle)stream);
	LEAVE
}

gompi_result gompi_event_done(uintptr_t ctx, uintptr_t event) {
	ENTER(ctx)
	r.call = "cuEventQuery";
	r.code = p_cuEventQuery((handle)event);
	r.value = r.code == 0;
	if (r.code == NOT_READY) r.code = 0;
	LEAVE
}

gompi_result gompi_event_sync(uintptr_t ctx, uintptr_t event) {
	ENTER(ctx)
	TRY(cuEventSynchronize, (handle)event);
	LEAVE
}

// ---- work

// wait_for waits for the work on the stream, if there is an event to do it with: at first by asking, as most work takes
// less than waking a thread, then asleep. How often to ask is a guess until a GPU has been measured.
static gompi_result wait_for(handle stream, handle event) {
	gompi_result r = {0};
	if (!event) return r;
	TRY(cuEventRecord, event, stream);
	r.call = "cuEventQuery";
	for (int i = 0; i < 100; i++) {
		r.code = p_cuEventQuery(event);
		if (r.code != NOT_READY) return r;
	}
	TRY(cuEventSynchronize, event);
out:
	return r;
}

// gompi_stream_sync waits with an event, too: cuStreamSynchronize may keep a processor busy for as long as it takes.
gompi_result gompi_stream_sync(uintptr_t ctx, uintptr_t stream, uintptr_t event) {
	ENTER(ctx)
	r = wait_for((handle)stream, (handle)event);
	LEAVE
}

gompi_result gompi_copy(uintptr_t ctx, uintptr_t dst, char *host_dst, uintptr_t src, char *host_src, size_t n,
	uintptr_t stream, uintptr_t event) {
	ENTER(ctx)
	TRY(cuMemcpyAsync, host_dst ? (uintptr_t)host_dst : dst, host_src ? (uintptr_t)host_src : src, n, (handle)stream);
	r = wait_for((handle)stream, (handle)event);
	LEAVE
}

gompi_result gompi_clear(uintptr_t ctx, uintptr_t addr, size_t n, uintptr_t stream) {
	ENTER(ctx)
	TRY(cuMemsetD8Async, addr, 0, n, (handle)stream);
	LEAVE
}

// gompi_launch starts a kernel whose one parameter is the struct at args.
gompi_result gompi_launch(uintptr_t ctx, uintptr_t kernel, unsigned grid, unsigned block, char *args,
	uintptr_t stream) {
	void *params[] = {args};
	ENTER(ctx)
	TRY(cuLaunchKernel, (handle)kernel, grid, 1, 1, block, 1, 1, 0, (handle)stream, params, NULL);
	LEAVE
}

// ---- kernels

gompi_result gompi_module(uintptr_t ctx, char *text, char *log, size_t log_size) {
	handle module = NULL;
	int options[] = {JIT_ERROR_LOG, JIT_ERROR_LOG_SIZE};
	void *values[] = {log, (void *)log_size};
	ENTER(ctx)
	TRY(cuModuleLoadDataEx, &module, text, 2, options, values);
	r.value = (uintptr_t)module;
	LEAVE
}

gompi_result gompi_module_close(uintptr_t ctx, uintptr_t module) {
	ENTER(ctx)
	TRY(cuModuleUnload, (handle)module);
	LEAVE
}

gompi_result gompi_kernel(uintptr_t ctx, uintptr_t module, char *name) {
	handle kernel = NULL;
	ENTER(ctx)
	TRY(cuModuleGetFunction, &kernel, (handle)module, name);
	r.value = (uintptr_t)kernel;
	LEAVE
}
