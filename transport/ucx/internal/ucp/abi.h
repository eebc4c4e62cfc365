// The part of UCP's binary interface that is used, as it has been since UCX 1.13. Structs say by their first word which fields
// are set, and have grown at their ends only. testdata/abi.c compares all of this with UCX's own headers.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef int8_t abi_status; // of UCX's functions too: negative for errors
typedef void *abi_request; // NULL: done; one of the last 100 addresses: an error; else under way

enum {
	ABI_MAJOR = 1, ABI_MINOR = 13, // of UCX, at least

	ABI_OK = 0,
	ABI_IN_PROGRESS = 1,
	ABI_NO_MEMORY = -4,
	ABI_INVALID_PARAM = -5,
	ABI_LAST_ERROR = -100,

	ABI_SERIALIZED = 1,  // thread mode: from any thread, one at a time
	ABI_ERRORS_PEER = 1, // requests end if the peer fails
	ABI_CLOSE_FORCE = 1,
	ABI_EAGER = 2,      // sending: never by rendezvous
	ABI_WHOLE = 1,      // receiving: in one callback
	ABI_PERSISTENT = 2, // receiving: data outlive the callback
};

#define ABI_RENDEZVOUS (1u << 17) // received: the payload is still at the sender
#define ABI_DATA (1u << 16)       // received: the payload outlives the callback

typedef struct {
	uint64_t mask;
	uint64_t features;
	size_t request_size;
	void *request_init, *request_cleanup;
	uint64_t tag_mask;
	int shared;
	size_t endpoints;
} abi_params;
enum { ABI_PARAMS_FEATURES = 1, ABI_PARAMS_ENDPOINTS = 64, ABI_FEATURE_RMA = 2, ABI_FEATURE_WAKEUP = 16, ABI_FEATURE_AM = 64 };

typedef struct {
	uint64_t mask;
	int thread_mode;
} abi_worker_params;
enum { ABI_WORKER_THREAD_MODE = 1 };

typedef struct {
	uint64_t mask;
	int thread_mode;
	uint32_t address_flags;
	void *address;
	size_t address_size;
	size_t most_header;
} abi_worker_attr;
enum { ABI_ATTR_ADDRESS = 2, ABI_ATTR_MOST_HEADER = 8 };

typedef struct {
	uint64_t attr;
	void *reply;
} abi_arrival;

typedef struct {
	uint64_t mask;
	unsigned id;
	uint32_t flags;
	abi_status (*call)(void *arg, const void *head, size_t head_size, void *data, size_t size, const abi_arrival *);
	void *arg;
} abi_handler;
enum { ABI_HANDLER_ALL = 15 };

typedef struct {
	uint64_t mask;
	const void *address;
	int error_mode;
	void (*failed)(void *arg, void *endpoint, abi_status);
	void *arg;
} abi_endpoint_params;
enum { ABI_ENDPOINT_ADDRESS = 1, ABI_ENDPOINT_ERROR_MODE = 2, ABI_ENDPOINT_FAILED = 4 };

typedef struct {
	uint64_t mask;
	void *address;
	size_t size;
} abi_memory;
enum { ABI_MEMORY_ADDRESS = 1, ABI_MEMORY_SIZE = 2 };

typedef struct {
	uint32_t mask;
	uint32_t flags;
	void *request;
	union {
		void (*sent)(void *request, abi_status, void *arg);
		void (*received)(void *request, abi_status, size_t, void *arg);
	} call;
	uint64_t datatype;
	void *arg;
	void *reply;
	int memory_type;
	void *info;
	void *memory;
} abi_operation;
enum { ABI_OP_CALL = 2, ABI_OP_ARG = 4, ABI_OP_FLAGS = 16, ABI_OP_MEMORY = 256 };

static inline int abi_pending(abi_request r) { return (uintptr_t)r - 1 < (uintptr_t)(intptr_t)ABI_LAST_ERROR - 1; }
static inline abi_status abi_outcome(abi_request r) { return abi_pending(r) ? ABI_IN_PROGRESS : (abi_status)(intptr_t)r; }

#define ABI_FUNCTIONS(X) \
	X(abi_status, ucp_config_read, (const char *prefix, const char *file, void **config)) \
	X(abi_status, ucp_config_modify, (void *config, const char *name, const char *value)) \
	X(void, ucp_config_release, (void *config)) \
	X(void, ucp_get_version, (unsigned *major, unsigned *minor, unsigned *release)) \
	X(abi_status, ucp_init_version, (unsigned major, unsigned minor, const abi_params *, const void *config, void **context)) \
	X(void, ucp_cleanup, (void *context)) \
	X(abi_status, ucp_worker_create, (void *context, const abi_worker_params *, void **worker)) \
	X(void, ucp_worker_destroy, (void *worker)) \
	X(abi_status, ucp_worker_query, (void *worker, abi_worker_attr *)) \
	X(void, ucp_worker_release_address, (void *worker, void *address)) \
	X(abi_status, ucp_worker_get_efd, (void *worker, int *fd)) \
	X(abi_status, ucp_worker_arm, (void *worker)) \
	X(unsigned, ucp_worker_progress, (void *worker)) \
	X(abi_request, ucp_ep_flush_nbx, (void *endpoint, const abi_operation *)) \
	X(abi_status, ucp_worker_set_am_recv_handler, (void *worker, const abi_handler *)) \
	X(abi_status, ucp_ep_create, (void *worker, const abi_endpoint_params *, void **endpoint)) \
	X(void, ucp_ep_print_info, (void *endpoint, FILE *)) \
	X(abi_request, ucp_ep_close_nbx, (void *endpoint, const abi_operation *)) \
	X(abi_request, ucp_am_send_nbx, (void *endpoint, unsigned id, const void *head, size_t, const void *data, size_t, const abi_operation *)) \
	X(abi_request, ucp_am_recv_data_nbx, (void *worker, void *descriptor, void *data, size_t, const abi_operation *)) \
	X(void, ucp_am_data_release, (void *worker, void *data)) \
	X(void, ucp_request_free, (void *request)) \
	X(abi_status, ucp_mem_map, (void *context, const abi_memory *, void **memory)) \
	X(abi_status, ucp_mem_unmap, (void *context, void *memory)) \
	X(abi_status, ucp_rkey_pack, (void *context, void *memory, void **key, size_t *)) \
	X(void, ucp_rkey_buffer_release, (void *key)) \
	X(abi_status, ucp_ep_rkey_unpack, (void *endpoint, const void *key, void **rkey)) \
	X(void, ucp_rkey_destroy, (void *rkey)) \
	X(abi_request, ucp_put_nbx, (void *endpoint, const void *data, size_t, uint64_t at, void *rkey, const abi_operation *)) \
	X(abi_request, ucp_get_nbx, (void *endpoint, void *data, size_t, uint64_t at, void *rkey, const abi_operation *)) \
	X(const char *, ucs_status_string, (abi_status))

#define ABI_DECLARE(result, name, args) extern result(*p_##name) args;
ABI_FUNCTIONS(ABI_DECLARE)
