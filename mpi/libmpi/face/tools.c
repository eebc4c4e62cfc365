/* The tools' interface, also before MPI_Init and after MPI_Finalize. gompi has performance variables of what -stats
 * counts, and no control variables, categories and events. Calls are counted while a handle is started, or with -stats;
 * else a call looks at one flag. A handle has what was counted while it was started: the difference of two totals. */
#include "face.h"
#include "counted.h"
#include <pthread.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all of the following */
static int users;                                        /* MPI_T_init_thread less MPI_T_finalize */

/* ---- Performance variables ---- */

static const struct variable {
	const char *name, *text;
	int class;
	size_t at; /* in the totals */
} variables[] = {
	{"gompi_calls", "calls of functions of MPI that communicate, wait or access files", MPI_T_PVAR_CLASS_COUNTER, offsetof(struct gompi_totals, calls)},
	{"gompi_time_in_calls", "nanoseconds in these calls, most of which they wait; of short ones one in 16 is timed after the first 256",
	 MPI_T_PVAR_CLASS_TIMER, offsetof(struct gompi_totals, time)},
	{"gompi_bytes", "bytes that these calls have sent, received and given to collectives", MPI_T_PVAR_CLASS_COUNTER,
	 offsetof(struct gompi_totals, bytes)},
	{"gompi_bytes_sent", "bytes of messages sent to other ranks, without collectives", MPI_T_PVAR_CLASS_COUNTER, offsetof(struct gompi_totals, sent)},
};
enum { VARIABLES = sizeof variables / sizeof *variables };

struct handle {
	struct handle *next;
	const struct variable *of;
	bool started;
	uint64_t sum, since; /* what was counted until the total was since, if it is started */
};

static struct session {
	struct session *next;
	struct handle *handles;
} *sessions;

static uint64_t total(const struct handle *h)
{
	struct gompi_totals t = gompi_count_totals();
	uint64_t n;
	memcpy(&n, (const char *)&t + h->of->at, sizeof n);
	return n;
}

static uint64_t value(const struct handle *h, uint64_t now) { return h->sum + (h->started ? now - h->since : 0); }

static void start(struct handle *h)
{
	if (h->started)
		return;
	gompi_count_for(1);
	h->since = total(h);
	h->started = true;
}

static void stop(struct handle *h)
{
	if (!h->started)
		return;
	h->sum = value(h, total(h));
	h->started = false;
	gompi_count_for(-1);
}

static void set(struct handle *h, uint64_t sum, uint64_t now)
{
	h->sum = sum;
	h->since = now;
}

static void reset(struct handle *h) { set(h, 0, total(h)); }

/* place returns where a session, or a handle of one, is listed, NULL if it is none. */
static struct session **session_place(const void *s)
{
	for (struct session **p = &sessions; *p; p = &(*p)->next)
		if (*p == s)
			return p;
	return NULL;
}

static struct handle **handle_place(const void *s, const void *h)
{
	struct session **of = session_place(s);
	for (struct handle **p = of ? &(*of)->handles : NULL; p && *p; p = &(*p)->next)
		if (*p == h)
			return p;
	return NULL;
}

static void remove_handle(struct handle **place)
{
	struct handle *h = *place;
	stop(h);
	*place = h->next;
	free(h);
}

static void remove_session(struct session **place)
{
	struct session *s = *place;
	while (s->handles)
		remove_handle(&s->handles);
	*place = s->next;
	free(s);
}

/* each does something to one handle, or to all of a session. */
static int each(MPI_T_pvar_session s, MPI_T_pvar_handle h, void (*act)(struct handle *))
{
	struct session **of = session_place(s);
	if (!of)
		return MPI_T_ERR_INVALID_SESSION;
	struct handle **one = h == MPI_T_PVAR_ALL_HANDLES ? NULL : handle_place(s, h);
	if (!one && h != MPI_T_PVAR_ALL_HANDLES)
		return MPI_T_ERR_INVALID_HANDLE;
	if (one)
		act(*one);
	for (struct handle *x = one ? NULL : (*of)->handles; x; x = x->next)
		act(x);
	return MPI_SUCCESS;
}

/* exchange stores the value in old, and then sets it to new, unless these are NULL. */
static int exchange(MPI_T_pvar_session s, MPI_T_pvar_handle h, void *old, const void *new)
{
	struct handle **place = handle_place(s, h);
	if (!place)
		return session_place(s) ? MPI_T_ERR_INVALID_HANDLE : MPI_T_ERR_INVALID_SESSION;
	uint64_t now = total(*place), n = value(*place, now);
	if (old)
		memcpy(old, &n, sizeof n);
	if (new) {
		memcpy(&n, new, sizeof n);
		set(*place, n, now);
	}
	return MPI_SUCCESS;
}

/* store_text stores a text, cut to *length bytes. Without room for one it stores how long it is. */
static void store_text(char *to, int *length, const char *text)
{
	if (to && length && *length > 0) {
		strncpy(to, text, (size_t)*length - 1);
		to[*length - 1] = 0;
		text = to;
	}
	if (length)
		*length = (int)strlen(text) + 1;
}

#define STORE(p, value) do { if (p) *(p) = (value); } while (0)

static int describe(int i, char *name, int *name_len, int *verbosity, int *var_class, MPI_Datatype *type, MPI_T_enum *e, char *desc,
		    int *desc_len, int *bind, int *readonly, int *continuous, int *atomic)
{
	if (i < 0 || i >= VARIABLES)
		return MPI_T_ERR_INVALID_INDEX;
	store_text(name, name_len, variables[i].name);
	store_text(desc, desc_len, variables[i].text);
	STORE(verbosity, MPI_T_VERBOSITY_USER_BASIC);
	STORE(var_class, variables[i].class);
	STORE(type, MPI_UNSIGNED_LONG_LONG);
	STORE(e, MPI_T_ENUM_NULL);
	STORE(bind, MPI_T_BIND_NO_OBJECT);
	STORE(readonly, 0);
	STORE(continuous, 0);
	STORE(atomic, 1);
	return MPI_SUCCESS;
}

static int index_of(const char *name, int class, int *i)
{
	for (int k = 0; k < VARIABLES; k++) {
		if (variables[k].class == class && strcmp(variables[k].name, name) == 0) {
			*i = k;
			return MPI_SUCCESS;
		}
	}
	return MPI_T_ERR_INVALID_NAME;
}

static int add_session(MPI_T_pvar_session *session)
{
	struct session *s = calloc(1, sizeof *s);
	if (!s)
		return MPI_T_ERR_OUT_OF_SESSIONS;
	s->next = sessions;
	sessions = s;
	*session = (MPI_T_pvar_session)s;
	return MPI_SUCCESS;
}

static int free_session(MPI_T_pvar_session *session)
{
	struct session **place = session_place(*session);
	if (!place)
		return MPI_T_ERR_INVALID_SESSION;
	remove_session(place);
	*session = MPI_T_PVAR_SESSION_NULL;
	return MPI_SUCCESS;
}

static int add_handle(MPI_T_pvar_session s, int i, MPI_T_pvar_handle *handle, int *count)
{
	struct session **of = session_place(s);
	if (!of)
		return MPI_T_ERR_INVALID_SESSION;
	if (i < 0 || i >= VARIABLES)
		return MPI_T_ERR_INVALID_INDEX;
	struct handle *h = calloc(1, sizeof *h);
	if (!h)
		return MPI_T_ERR_OUT_OF_HANDLES;
	h->of = &variables[i];
	h->next = (*of)->handles;
	(*of)->handles = h;
	*handle = (MPI_T_pvar_handle)h;
	*count = 1;
	return MPI_SUCCESS;
}

static int free_handle(MPI_T_pvar_session s, MPI_T_pvar_handle *handle)
{
	struct handle **place = handle_place(s, *handle);
	if (!place)
		return session_place(s) ? MPI_T_ERR_INVALID_HANDLE : MPI_T_ERR_INVALID_SESSION;
	remove_handle(place);
	*handle = MPI_T_PVAR_HANDLE_NULL;
	return MPI_SUCCESS;
}

static int leave(void)
{
	while (users == 1 && sessions)
		remove_session(&sessions);
	users--;
	return MPI_SUCCESS;
}

/* ---- The interface ---- */

#define LOCKED(call) \
	pthread_mutex_lock(&lock); \
	int error = users > 0 ? (call) : MPI_T_ERR_NOT_INITIALIZED; \
	pthread_mutex_unlock(&lock); \
	return error

static int answer(int of) { LOCKED(of); }

GOMPI_ALIAS(T_init_thread)
int PMPI_T_init_thread(int required, int *provided)
{
	pthread_mutex_lock(&lock);
	users++;
	pthread_mutex_unlock(&lock);
	*provided = MPI_THREAD_MULTIPLE;
	return MPI_SUCCESS;
}

#define DO(name, call, ...) GOMPI_ALIAS(T_##name) int PMPI_T_##name(__VA_ARGS__) { LOCKED(call); }
DO(finalize, leave(), void)
DO(pvar_session_create, add_session(session), MPI_T_pvar_session *session)
DO(pvar_session_free, free_session(session), MPI_T_pvar_session *session)
DO(pvar_get_info, describe(i, name, name_len, verbosity, var_class, type, e, desc, desc_len, bind, readonly, continuous, atomic), int i,
   char *name, int *name_len, int *verbosity, int *var_class, MPI_Datatype *type, MPI_T_enum *e, char *desc, int *desc_len, int *bind,
   int *readonly, int *continuous, int *atomic)
DO(pvar_get_index, index_of(name, var_class, i), const char *name, int var_class, int *i)
DO(pvar_handle_alloc, add_handle(s, i, h, count), MPI_T_pvar_session s, int i, void *object, MPI_T_pvar_handle *h, int *count)
DO(pvar_handle_free, free_handle(s, h), MPI_T_pvar_session s, MPI_T_pvar_handle *h)
DO(pvar_start, each(s, h, start), MPI_T_pvar_session s, MPI_T_pvar_handle h)
DO(pvar_stop, each(s, h, stop), MPI_T_pvar_session s, MPI_T_pvar_handle h)
DO(pvar_reset, each(s, h, reset), MPI_T_pvar_session s, MPI_T_pvar_handle h)
DO(pvar_read, exchange(s, h, buf, NULL), MPI_T_pvar_session s, MPI_T_pvar_handle h, void *buf)
DO(pvar_readreset, exchange(s, h, buf, &(uint64_t){0}), MPI_T_pvar_session s, MPI_T_pvar_handle h, void *buf)
DO(pvar_write, exchange(s, h, NULL, buf), MPI_T_pvar_session s, MPI_T_pvar_handle h, const void *buf)

/* Of some things there are a number that does not change, mostly none. */
#define NUMBER(name, number) GOMPI_ALIAS(T_##name) int PMPI_T_##name(int *n) { return *n = (number), answer(MPI_SUCCESS); }
NUMBER(pvar_get_num, VARIABLES)
NUMBER(cvar_get_num, 0)
NUMBER(category_get_num, 0)
NUMBER(category_changed, 0)

/* What asks for one of these by its index, name or handle is wrong. */
#define REFUSE(name, error, ...) GOMPI_ALIAS(T_##name) int PMPI_T_##name(__VA_ARGS__) { return answer(MPI_T_ERR_##error); }
REFUSE(cvar_get_info, INVALID_INDEX, int i, char *name, int *name_len, int *verbosity, MPI_Datatype *type, MPI_T_enum *e,
       char *desc, int *desc_len, int *bind, int *scope)
REFUSE(cvar_get_index, INVALID_NAME, const char *name, int *i)
REFUSE(cvar_handle_alloc, INVALID_INDEX, int i, void *object, MPI_T_cvar_handle *h, int *count)
REFUSE(cvar_handle_free, INVALID_HANDLE, MPI_T_cvar_handle *h)
REFUSE(cvar_read, INVALID_HANDLE, MPI_T_cvar_handle h, void *buf)
REFUSE(cvar_write, INVALID_HANDLE, MPI_T_cvar_handle h, const void *buf)
REFUSE(enum_get_info, INVALID_HANDLE, MPI_T_enum e, int *n, char *name, int *name_len)
REFUSE(enum_get_item, INVALID_HANDLE, MPI_T_enum e, int i, int *value, char *name, int *name_len)
REFUSE(category_get_info, INVALID_INDEX, int i, char *name, int *name_len, char *desc, int *desc_len, int *cvars, int *pvars,
       int *categories)
REFUSE(category_get_index, INVALID_NAME, const char *name, int *i)
REFUSE(category_get_cvars, INVALID_INDEX, int i, int len, int *indices)
REFUSE(category_get_pvars, INVALID_INDEX, int i, int len, int *indices)
REFUSE(category_get_categories, INVALID_INDEX, int i, int len, int *indices)

#if MPI_VERSION >= 4
NUMBER(event_get_num, 0)
NUMBER(source_get_num, 0)
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
