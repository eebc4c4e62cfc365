/* Functions of MPI 4.1 and 5.0, which the installed headers do not declare: they are looked up. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(x) do { if (!(x)) { fprintf(stderr, "newer.c, line %d: %s\n", __LINE__, #x); MPI_Abort(MPI_COMM_WORLD, 1); } } while (0)
#define OK(x) CHECK((x) == MPI_SUCCESS)

static int (*look(const char *name))()
{
	int (*f)();
	*(void **)&f = dlsym(RTLD_DEFAULT, name);
	if (!f) {
		fprintf(stderr, "there is no %s\n", name);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return f;
}
#define CALL(name, ...) look("MPI_" #name)(__VA_ARGS__)

static int class_of(int code)
{
	int class;
	MPI_Error_class(code, &class);
	return class;
}

/* requests asks for two receives, of which one is over, and a null request. */
static void requests(void)
{
	int a = 0, b = 0, flag, index, n, indices[3], source, tag;
	MPI_Request r[3] = {MPI_REQUEST_NULL};
	MPI_Status st[3] = {{.MPI_ERROR = MPI_ERR_OTHER}};
	OK(CALL(Request_get_status_any, 1, r, &index, &flag, st));
	CHECK(flag && index == MPI_UNDEFINED && st->MPI_ERROR == MPI_SUCCESS);
	OK(CALL(Request_get_status_some, 1, r, &n, indices, st));
	CHECK(n == MPI_UNDEFINED);
	OK(CALL(Request_get_status_all, 1, r, &flag, st));
	CHECK(flag);
	MPI_Irecv(&a, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &r[1]);
	MPI_Irecv(&b, 1, MPI_INT, 0, 2, MPI_COMM_SELF, &r[2]);
	OK(CALL(Request_get_status_any, 3, r, &index, &flag, st));
	CHECK(!flag);
	OK(CALL(Request_get_status_some, 3, r, &n, indices, st));
	CHECK(n == 0);
	n = 7;
	MPI_Send(&n, 1, MPI_INT, 0, 2, MPI_COMM_SELF);
	OK(CALL(Request_get_status_any, 3, r, &index, &flag, st));
	CHECK(flag && index == 2 && st->MPI_TAG == 2 && st->MPI_SOURCE == 0);
	OK(CALL(Request_get_status_some, 3, r, &n, indices, st));
	CHECK(n == 1 && indices[0] == 2 && st[0].MPI_TAG == 2 && b == 7);
	OK(CALL(Request_get_status_all, 3, r, &flag, st));
	CHECK(!flag);
	MPI_Send(&n, 1, MPI_INT, 0, 1, MPI_COMM_SELF);
	OK(CALL(Request_get_status_all, 3, r, &flag, st));
	CHECK(flag && st[0].MPI_TAG == MPI_ANY_TAG && st[1].MPI_TAG == 1 && st[2].MPI_TAG == 2);
	CHECK(r[1] != MPI_REQUEST_NULL && r[2] != MPI_REQUEST_NULL); /* nothing was freed */
	OK(MPI_Waitall(3, r, st));
	OK(CALL(Status_get_source, &st[2], &source));
	OK(CALL(Status_get_tag, &st[2], &tag));
	CHECK(source == 0 && tag == 2);
	OK(CALL(Status_set_source, st, 5));
	OK(CALL(Status_set_tag, st, 6));
	OK(CALL(Status_set_error, st, MPI_ERR_TAG));
	OK(CALL(Status_get_error, st, &n));
	CHECK(st->MPI_SOURCE == 5 && st->MPI_TAG == 6 && n == MPI_ERR_TAG);
	OK(CALL(Status_set_elements_c, st, MPI_INT, (MPI_Count)3));
	MPI_Get_count(st, MPI_INT, &n);
	CHECK(n == 3);
}

/* buffered sends a message that needs its receiver, and flushes the buffer when that has come. */
static void buffered(void)
{
	enum { BYTES = 1 << 20 };
	char *buffer = malloc(BYTES + MPI_BSEND_OVERHEAD), *in = calloc(BYTES, 1), *out = malloc(BYTES);
	MPI_Request got, sent;
	int flag, n;
	memset(out, 'x', BYTES);
	MPI_Buffer_attach(buffer, BYTES + MPI_BSEND_OVERHEAD);
	for (int wait = 0; wait < 2; wait++) {
		OK(MPI_Bsend(out, BYTES, MPI_CHAR, 0, 3, MPI_COMM_SELF));
		OK(CALL(Buffer_iflush, &sent));
		OK(MPI_Irecv(in, BYTES, MPI_CHAR, 0, 3, MPI_COMM_SELF, &got));
		if (wait)
			OK(MPI_Wait(&sent, MPI_STATUS_IGNORE));
		OK(CALL(Buffer_flush));
		if (!wait) {
			OK(MPI_Test(&sent, &flag, MPI_STATUS_IGNORE));
			CHECK(flag);
		}
		OK(MPI_Wait(&got, MPI_STATUS_IGNORE));
		CHECK(in[BYTES - 1] == 'x');
	}
	OK(MPI_Buffer_detach(&buffer, &n));
	CHECK(n == BYTES + MPI_BSEND_OVERHEAD);
}

/* own attaches a buffer to a communicator, beside that of the process, and one that grows. */
static void own(void)
{
	char all[100 + MPI_BSEND_OVERHEAD], small[4 + MPI_BSEND_OVERHEAD], got[100];
	void *at;
	int n;
	MPI_Count large;
	MPI_Comm c;
	MPI_Request r;
#if defined OPEN_MPI || defined MPI_ABI_VERSION
	void *automatic = (void *)2;
#else
	void *automatic = (void *)-2;
#endif
	MPI_Comm_dup(MPI_COMM_SELF, &c);
	MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
	MPI_Buffer_attach(all, sizeof all);
	OK(CALL(Comm_attach_buffer, c, small, (int)sizeof small));
	CHECK(class_of(MPI_Bsend(all, 100, MPI_CHAR, 0, 0, c)) == MPI_ERR_BUFFER); /* it is too small */
	OK(MPI_Bsend("abc", 4, MPI_CHAR, 0, 0, c));
	OK(MPI_Recv(got, 4, MPI_CHAR, 0, 0, c, MPI_STATUS_IGNORE));
	CHECK(!strcmp(got, "abc"));
	OK(CALL(Comm_flush_buffer, c));
	OK(CALL(Comm_iflush_buffer, c, &r));
	OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	OK(CALL(Comm_detach_buffer_c, c, &at, &large));
	CHECK(at == small && large == sizeof small);
	CHECK(class_of(CALL(Comm_detach_buffer, c, &at, &n)) == MPI_ERR_BUFFER);
	OK(MPI_Bsend(all, 100, MPI_CHAR, 0, 0, c)); /* by that of the process */
	OK(MPI_Recv(got, 100, MPI_CHAR, 0, 0, c, MPI_STATUS_IGNORE));
	OK(MPI_Buffer_detach(&at, &n));
	OK(CALL(Comm_attach_buffer_c, c, automatic, (MPI_Count)0));
	OK(MPI_Bsend(all, 100, MPI_CHAR, 0, 0, c));
	OK(MPI_Recv(got, 100, MPI_CHAR, 0, 0, c, MPI_STATUS_IGNORE));
	OK(CALL(Comm_detach_buffer, c, &at, &n));
	CHECK(at == automatic);
	MPI_Comm_free(&c);
}

static void codes(void)
{
	int class, other, code, length;
	char text[MPI_MAX_ERROR_STRING];
	OK(MPI_Add_error_class(&class));
	OK(MPI_Add_error_code(class, &code));
	OK(MPI_Add_error_string(code, "mine"));
	CHECK(class_of(CALL(Remove_error_class, class)) == MPI_ERR_ARG); /* it has a code */
	CHECK(class_of(CALL(Remove_error_code, class)) == MPI_ERR_ARG);  /* it is a class */
	CHECK(class_of(CALL(Remove_error_code, MPI_ERR_TAG)) == MPI_ERR_ARG);
	CHECK(class_of(CALL(Remove_error_code, code)) == MPI_ERR_ARG); /* it has a text */
	OK(CALL(Remove_error_string, code));
	OK(MPI_Error_string(code, text, &length));
	CHECK(length == 0);
	OK(CALL(Remove_error_code, code));
	CHECK(MPI_Error_string(code, text, &length) != MPI_SUCCESS);
	OK(look("MPIX_Delete_error_class")(class));
	OK(MPI_Add_error_class(&other));
	CHECK(other == class);
	OK(CALL(Remove_error_class, other));
}

#define ROUND(name, type, handle) do { \
		int number = CALL(name##_toint, handle); \
		type (*from)(int); \
		*(void **)&from = (void *)look("MPI_" #name "_fromint"); \
		CHECK(from(number) == handle); \
	} while (0)

static void numbers(void)
{
	MPI_Comm c;
	MPI_Group g;
	MPI_Info info;
	MPI_Request r;
	int major = 0, minor = 0, flag;
	char value[8], text[MPI_MAX_ERROR_STRING];
	MPI_Datatype pair;
	MPI_Comm_dup(MPI_COMM_SELF, &c);
	MPI_Comm_group(c, &g);
	OK(CALL(Abi_get_info, &info));
	OK(MPI_Info_get(info, "mpi_aint_size", sizeof value - 1, value, &flag));
	CHECK(flag && atoi(value) == sizeof(MPI_Aint));
	MPI_Recv_init(&flag, 1, MPI_INT, 0, 0, c, &r);
	ROUND(Comm, MPI_Comm, c);
	ROUND(Group, MPI_Group, g);
	ROUND(Info, MPI_Info, info);
	ROUND(Request, MPI_Request, r);
	ROUND(Type, MPI_Datatype, MPI_DOUBLE);
	ROUND(Op, MPI_Op, MPI_MAX);
	ROUND(Errhandler, MPI_Errhandler, MPI_ERRORS_RETURN);
	ROUND(Message, MPI_Message, MPI_MESSAGE_NULL);
	ROUND(Win, MPI_Win, MPI_WIN_NULL);
	ROUND(File, MPI_File, MPI_FILE_NULL);
#ifndef MPI_ABI_VERSION
	CHECK(MPI_Win_f2c(MPI_Win_c2f(MPI_WIN_NULL)) == MPI_WIN_NULL);
	CHECK(MPI_File_f2c(MPI_File_c2f(MPI_FILE_NULL)) == MPI_FILE_NULL && MPI_File_c2f(MPI_FILE_NULL) == 0);
#endif
	MPI_Request_free(&r);
	MPI_Info_free(&info);
	MPI_Group_free(&g);
	MPI_Comm_free(&c);
	OK(CALL(Abi_get_version, &major, &minor));
#ifdef MPI_ABI_VERSION
	CHECK(major == MPI_ABI_VERSION && minor == MPI_ABI_SUBVERSION);
#else
	CHECK(major == -1 && minor == -1);
#endif
	OK(CALL(Abi_get_fortran_info, &info));
	OK(MPI_Info_get(info, "mpi_integer_size", sizeof value - 1, value, &flag));
	CHECK(flag && atoi(value) == 4);
	OK(MPI_Info_get(info, "mpi_real16_supported", sizeof value - 1, value, &flag));
	CHECK(flag && !strcmp(value, "true"));
	int failed = CALL(Abi_set_fortran_info, info), length;
	OK(MPI_Error_string(failed, text, &length));
#ifdef OPEN_MPI
	CHECK(class_of(failed) == MPI_ERR_OTHER); /* its version 5 has no class for it */
#else
	CHECK(!strncmp(text, "MPI_ERR_ABI: ", 13));
#endif
	MPI_Info_free(&info);
	OK(CALL(Abi_get_fortran_booleans, 4, &major, &minor, &flag));
	CHECK(flag && major == 1 && minor == 0);
	OK(CALL(Abi_get_fortran_booleans, 3, &major, &minor, &flag));
	CHECK(!flag);
	OK(CALL(Get_hw_resource_info, &info));
	OK(MPI_Info_get_nkeys(info, &flag));
	CHECK(flag == 0);
	MPI_Info_free(&info);
	OK(CALL(Type_get_value_index, MPI_DOUBLE, MPI_INT, &pair));
	CHECK(pair == MPI_DOUBLE_INT);
	OK(CALL(Type_get_value_index, MPI_DOUBLE, MPI_DOUBLE, &pair));
	CHECK(pair == MPI_DATATYPE_NULL);
}

/* tools asks for variables, of which there are none: also before MPI_Init and after MPI_Finalize. */
static void tools(void)
{
	int n = -1, provided = -1;
	MPI_T_pvar_session session;
	MPI_T_cvar_handle handle;
	CHECK(MPI_T_cvar_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED);
	OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
	OK(MPI_T_cvar_get_num(&n));
	CHECK(n == 0 && provided == MPI_THREAD_MULTIPLE);
	OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
	OK(MPI_T_finalize());
	CHECK(MPI_T_cvar_handle_alloc(0, NULL, &handle, &n) == MPI_T_ERR_INVALID_INDEX);
	CHECK(MPI_T_category_get_index("a", &n) == MPI_T_ERR_INVALID_NAME);
	OK(MPI_T_pvar_session_create(&session));
	OK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
	OK(MPI_T_pvar_session_free(&session));
	CHECK(session == MPI_T_PVAR_SESSION_NULL && MPI_T_pvar_session_free(&session) == MPI_T_ERR_INVALID_SESSION);
	OK(MPI_T_finalize());
	CHECK(MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED);
}

/* missing calls what there is not: processes that are started later, ports, partitioned messages. Each
 * says its name. */
static void missing(void)
{
	static const char *const names[] = {
		"Comm_spawn", "Comm_spawn_multiple", "Comm_accept", "Comm_connect", "Comm_join", "Open_port", "Close_port",
		"Publish_name", "Unpublish_name", "Lookup_name", "Psend_init", "Precv_init", "Pready", "Pready_range",
		"Pready_list", "Parrived",
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char name[64], text[MPI_MAX_ERROR_STRING];
		int length, code;
		snprintf(name, sizeof name, "MPI_%s", names[i]);
		code = look(name)(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
		CHECK(class_of(code) == MPI_ERR_UNSUPPORTED_OPERATION);
		MPI_Error_string(code, text, &length);
		if (!strstr(text, name) || !strstr(text, "not implemented by gompi")) {
			fprintf(stderr, "%s says: %s\n", name, text);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	MPI_Comm parent;
	OK(MPI_Comm_get_parent(&parent));
	CHECK(parent == MPI_COMM_NULL);
}

int main(int argc, char **argv)
{
	int rank = 1;
	tools();
	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	requests();
	buffered();
	own();
	codes();
	numbers();
	missing();
	CHECK(look("PMPIX_Comm_get_failed"));
#ifndef MPI_ABI_VERSION
	CHECK(class_of(look("MPIX_Stream_create")(MPI_INFO_NULL, NULL)) == MPI_ERR_UNSUPPORTED_OPERATION);
	CHECK(dlsym(RTLD_DEFAULT, "MPIR_fortran_true"));
#endif
	CHECK(look("MPIX_Query_cuda_support")() == 0 && look("MPIX_Query_rocm_support")() == 0);
	OK(look("MPIX_GPU_query_support")(0, &rank));
	CHECK(rank == 0);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 0)
		printf("newer: no errors\n");
	MPI_Finalize();
	tools();
	return 0;
}
