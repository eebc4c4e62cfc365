/* The tools' interface: gompi has no variables, categories and events for it, so that there is nothing
 * to ask for. It may be used before MPI_Init and after MPI_Finalize. */
#include "face.h"
#include <pthread.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int users; /* MPI_T_init_thread less MPI_T_finalize */

static int answer(int error)
{
	pthread_mutex_lock(&lock);
	int on = users > 0;
	pthread_mutex_unlock(&lock);
	return on ? error : MPI_T_ERR_NOT_INITIALIZED;
}

GOMPI_ALIAS(T_init_thread)
int PMPI_T_init_thread(int required, int *provided)
{
	pthread_mutex_lock(&lock);
	users++;
	pthread_mutex_unlock(&lock);
	*provided = MPI_THREAD_MULTIPLE;
	return MPI_SUCCESS;
}

GOMPI_ALIAS(T_finalize)
int PMPI_T_finalize(void)
{
	int error = answer(MPI_SUCCESS);
	pthread_mutex_lock(&lock);
	users -= !error;
	pthread_mutex_unlock(&lock);
	return error;
}

/* Of everything there are none. */
#define NUMBER(name) GOMPI_ALIAS(T_##name) int PMPI_T_##name(int *n) { return *n = 0, answer(MPI_SUCCESS); }
NUMBER(cvar_get_num)
NUMBER(pvar_get_num)
NUMBER(category_get_num)
NUMBER(category_changed)

/* Sessions are told apart, and that is all. */
GOMPI_ALIAS(T_pvar_session_create)
int PMPI_T_pvar_session_create(MPI_T_pvar_session *session)
{
	int error = answer(MPI_SUCCESS);
	if (!error && !(*session = malloc(1)))
		return MPI_T_ERR_OUT_OF_SESSIONS;
	return error;
}

GOMPI_ALIAS(T_pvar_session_free)
int PMPI_T_pvar_session_free(MPI_T_pvar_session *session)
{
	int error = answer(*session == MPI_T_PVAR_SESSION_NULL ? MPI_T_ERR_INVALID_SESSION : MPI_SUCCESS);
	if (error)
		return error;
	free(*session);
	*session = MPI_T_PVAR_SESSION_NULL;
	return MPI_SUCCESS;
}

/* What asks for one by its index, name or handle is wrong. */
#define REFUSE(name, error, ...) GOMPI_ALIAS(T_##name) int PMPI_T_##name(__VA_ARGS__) { return answer(MPI_T_ERR_##error); }
REFUSE(cvar_get_info, INVALID_INDEX, int i, char *name, int *name_len, int *verbosity, MPI_Datatype *type, MPI_T_enum *e,
       char *desc, int *desc_len, int *bind, int *scope)
REFUSE(cvar_get_index, INVALID_NAME, const char *name, int *i)
REFUSE(cvar_handle_alloc, INVALID_INDEX, int i, void *object, MPI_T_cvar_handle *h, int *count)
REFUSE(cvar_handle_free, INVALID_HANDLE, MPI_T_cvar_handle *h)
REFUSE(cvar_read, INVALID_HANDLE, MPI_T_cvar_handle h, void *buf)
REFUSE(cvar_write, INVALID_HANDLE, MPI_T_cvar_handle h, const void *buf)
REFUSE(pvar_get_info, INVALID_INDEX, int i, char *name, int *name_len, int *verbosity, int *var_class, MPI_Datatype *type,
       MPI_T_enum *e, char *desc, int *desc_len, int *bind, int *readonly, int *continuous, int *atomic)
REFUSE(pvar_get_index, INVALID_NAME, const char *name, int var_class, int *i)
REFUSE(pvar_handle_alloc, INVALID_INDEX, MPI_T_pvar_session s, int i, void *object, MPI_T_pvar_handle *h, int *count)
REFUSE(pvar_handle_free, INVALID_HANDLE, MPI_T_pvar_session s, MPI_T_pvar_handle *h)
REFUSE(pvar_read, INVALID_HANDLE, MPI_T_pvar_session s, MPI_T_pvar_handle h, void *buf)
REFUSE(pvar_readreset, INVALID_HANDLE, MPI_T_pvar_session s, MPI_T_pvar_handle h, void *buf)
REFUSE(pvar_write, INVALID_HANDLE, MPI_T_pvar_session s, MPI_T_pvar_handle h, const void *buf)
REFUSE(enum_get_info, INVALID_HANDLE, MPI_T_enum e, int *n, char *name, int *name_len)
REFUSE(enum_get_item, INVALID_HANDLE, MPI_T_enum e, int i, int *value, char *name, int *name_len)
REFUSE(category_get_info, INVALID_INDEX, int i, char *name, int *name_len, char *desc, int *desc_len, int *cvars, int *pvars,
       int *categories)
REFUSE(category_get_index, INVALID_NAME, const char *name, int *i)
REFUSE(category_get_cvars, INVALID_INDEX, int i, int len, int *indices)
REFUSE(category_get_pvars, INVALID_INDEX, int i, int len, int *indices)
REFUSE(category_get_categories, INVALID_INDEX, int i, int len, int *indices)

/* All handles of a session are none: to start, stop or reset them is right. */
#define ALL(name) \
	GOMPI_ALIAS(T_##name) \
	int PMPI_T_##name(MPI_T_pvar_session s, MPI_T_pvar_handle h) \
	{ return answer(h == MPI_T_PVAR_ALL_HANDLES ? MPI_SUCCESS : MPI_T_ERR_INVALID_HANDLE); }
ALL(pvar_start)
ALL(pvar_stop)
ALL(pvar_reset)

#if MPI_VERSION >= 4
NUMBER(event_get_num)
NUMBER(source_get_num)
REFUSE(category_get_num_events, INVALID_INDEX, int i, int *n)
REFUSE(category_get_events, INVALID_INDEX, int i, int len, int *indices)
REFUSE(event_get_index, INVALID_NAME, const char *name, int *i)
REFUSE(event_get_info, INVALID_INDEX, int i, char *name, int *name_len, int *verbosity, MPI_Datatype *types, MPI_Aint *displs,
       int *elements, MPI_T_enum *e, MPI_Info *info, char *desc, int *desc_len, int *bind)
REFUSE(event_handle_alloc, INVALID_INDEX, int i, void *object, MPI_Info info, MPI_T_event_registration *r)
REFUSE(event_handle_free, INVALID_HANDLE, MPI_T_event_registration r, void *data, MPI_T_event_free_cb_function f)
REFUSE(event_handle_get_info, INVALID_HANDLE, MPI_T_event_registration r, MPI_Info *info)
REFUSE(event_handle_set_info, INVALID_HANDLE, MPI_T_event_registration r, MPI_Info info)
REFUSE(event_register_callback, INVALID_HANDLE, MPI_T_event_registration r, MPI_T_cb_safety safety, MPI_Info info, void *data,
       MPI_T_event_cb_function f)
REFUSE(event_callback_get_info, INVALID_HANDLE, MPI_T_event_registration r, MPI_T_cb_safety safety, MPI_Info *info)
REFUSE(event_callback_set_info, INVALID_HANDLE, MPI_T_event_registration r, MPI_T_cb_safety safety, MPI_Info info)
REFUSE(event_set_dropped_handler, INVALID_HANDLE, MPI_T_event_registration r, MPI_T_event_dropped_cb_function f)
REFUSE(event_copy, INVALID_HANDLE, MPI_T_event_instance e, void *buf)
REFUSE(event_read, INVALID_HANDLE, MPI_T_event_instance e, int i, void *buf)
REFUSE(event_get_source, INVALID_HANDLE, MPI_T_event_instance e, int *i)
REFUSE(event_get_timestamp, INVALID_HANDLE, MPI_T_event_instance e, MPI_Count *t)
REFUSE(source_get_info, INVALID_INDEX, int i, char *name, int *name_len, char *desc, int *desc_len, MPI_T_source_order *order,
       MPI_Count *ticks, MPI_Count *most, MPI_Info *info)
REFUSE(source_get_timestamp, INVALID_INDEX, int i, MPI_Count *t)
#endif
