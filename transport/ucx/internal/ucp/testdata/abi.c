// Compares abi.h with the headers of the UCX that is installed: it compiles, or it does not.
// That functions take what abi.h says is not compared: their structs have other names there.
#include <ucp/api/ucp.h>

#include "../abi.h"

#define SAME(a, b) _Static_assert((long long)(a) == (long long)(b), #a " is not " #b)
#define FIELD(ours, field, theirs, name) \
	SAME(offsetof(ours, field), offsetof(theirs, name)); \
	SAME(sizeof(((ours *)0)->field), sizeof(((theirs *)0)->name))
// A struct of ours is given to UCX: it holds no more than UCX's.
#define WITHIN(ours, theirs) _Static_assert(sizeof(ours) <= sizeof(theirs), #ours " is larger than " #theirs)

SAME(sizeof(abi_status), sizeof(ucs_status_t));
SAME(sizeof(abi_request), sizeof(ucs_status_ptr_t));
SAME(ABI_OK, UCS_OK);
SAME(ABI_IN_PROGRESS, UCS_INPROGRESS);
SAME(ABI_NO_MEMORY, UCS_ERR_NO_MEMORY);
SAME(ABI_INVALID_PARAM, UCS_ERR_INVALID_PARAM);
SAME(ABI_LAST_ERROR, UCS_ERR_LAST);

SAME(ABI_SERIALIZED, UCS_THREAD_MODE_SERIALIZED);
SAME(ABI_ERRORS_PEER, UCP_ERR_HANDLING_MODE_PEER);
SAME(ABI_CLOSE_FORCE, UCP_EP_CLOSE_FLAG_FORCE);
SAME(ABI_EAGER, UCP_AM_SEND_FLAG_EAGER);
SAME(ABI_WHOLE, UCP_AM_FLAG_WHOLE_MSG);
SAME(ABI_PERSISTENT, UCP_AM_FLAG_PERSISTENT_DATA);
SAME(ABI_RENDEZVOUS, UCP_AM_RECV_ATTR_FLAG_RNDV);
SAME(ABI_DATA, UCP_AM_RECV_ATTR_FLAG_DATA);

FIELD(abi_params, mask, ucp_params_t, field_mask);
FIELD(abi_params, features, ucp_params_t, features);
FIELD(abi_params, endpoints, ucp_params_t, estimated_num_eps);
WITHIN(abi_params, ucp_params_t);
SAME(ABI_PARAMS_FEATURES, UCP_PARAM_FIELD_FEATURES);
SAME(ABI_PARAMS_ENDPOINTS, UCP_PARAM_FIELD_ESTIMATED_NUM_EPS);
SAME(ABI_FEATURE_WAKEUP, UCP_FEATURE_WAKEUP);
SAME(ABI_FEATURE_AM, UCP_FEATURE_AM);
SAME(ABI_FEATURE_RMA, UCP_FEATURE_RMA);

FIELD(abi_worker_params, mask, ucp_worker_params_t, field_mask);
FIELD(abi_worker_params, thread_mode, ucp_worker_params_t, thread_mode);
WITHIN(abi_worker_params, ucp_worker_params_t);
SAME(ABI_WORKER_THREAD_MODE, UCP_WORKER_PARAM_FIELD_THREAD_MODE);

FIELD(abi_worker_attr, mask, ucp_worker_attr_t, field_mask);
FIELD(abi_worker_attr, address, ucp_worker_attr_t, address);
FIELD(abi_worker_attr, address_size, ucp_worker_attr_t, address_length);
FIELD(abi_worker_attr, most_header, ucp_worker_attr_t, max_am_header);
SAME(ABI_ATTR_ADDRESS, UCP_WORKER_ATTR_FIELD_ADDRESS);
SAME(ABI_ATTR_MOST_HEADER, UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER);

FIELD(abi_arrival, attr, ucp_am_recv_param_t, recv_attr);
FIELD(abi_handler, mask, ucp_am_handler_param_t, field_mask);
FIELD(abi_handler, id, ucp_am_handler_param_t, id);
FIELD(abi_handler, flags, ucp_am_handler_param_t, flags);
FIELD(abi_handler, call, ucp_am_handler_param_t, cb);
FIELD(abi_handler, arg, ucp_am_handler_param_t, arg);
WITHIN(abi_handler, ucp_am_handler_param_t);
SAME(ABI_HANDLER_ALL, UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG);

FIELD(abi_endpoint_params, mask, ucp_ep_params_t, field_mask);
FIELD(abi_endpoint_params, address, ucp_ep_params_t, address);
FIELD(abi_endpoint_params, error_mode, ucp_ep_params_t, err_mode);
FIELD(abi_endpoint_params, failed, ucp_ep_params_t, err_handler.cb);
FIELD(abi_endpoint_params, arg, ucp_ep_params_t, err_handler.arg);
WITHIN(abi_endpoint_params, ucp_ep_params_t);
SAME(ABI_ENDPOINT_ADDRESS, UCP_EP_PARAM_FIELD_REMOTE_ADDRESS);
SAME(ABI_ENDPOINT_ERROR_MODE, UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE);
SAME(ABI_ENDPOINT_FAILED, UCP_EP_PARAM_FIELD_ERR_HANDLER);

FIELD(abi_memory, mask, ucp_mem_map_params_t, field_mask);
FIELD(abi_memory, address, ucp_mem_map_params_t, address);
FIELD(abi_memory, size, ucp_mem_map_params_t, length);
WITHIN(abi_memory, ucp_mem_map_params_t);
SAME(ABI_MEMORY_ADDRESS, UCP_MEM_MAP_PARAM_FIELD_ADDRESS);
SAME(ABI_MEMORY_SIZE, UCP_MEM_MAP_PARAM_FIELD_LENGTH);

FIELD(abi_operation, mask, ucp_request_param_t, op_attr_mask);
FIELD(abi_operation, flags, ucp_request_param_t, flags);
FIELD(abi_operation, call.sent, ucp_request_param_t, cb.send);
FIELD(abi_operation, call.received, ucp_request_param_t, cb.recv_am);
FIELD(abi_operation, arg, ucp_request_param_t, user_data);
FIELD(abi_operation, memory, ucp_request_param_t, memh);
WITHIN(abi_operation, ucp_request_param_t);
SAME(ABI_OP_CALL, UCP_OP_ATTR_FIELD_CALLBACK);
SAME(ABI_OP_ARG, UCP_OP_ATTR_FIELD_USER_DATA);
SAME(ABI_OP_FLAGS, UCP_OP_ATTR_FIELD_FLAGS);
SAME(ABI_OP_MEMORY, UCP_OP_ATTR_FIELD_MEMH);
