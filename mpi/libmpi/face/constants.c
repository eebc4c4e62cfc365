/* Enumerations: the core's numbers beside those of mpi.h. */
#include "face.h"
#include <string.h>

#ifndef GOMPI_STANDARD
struct pair { int core, face; };

/* Error classes: package errs has the numbers. */
static const struct pair codes[] = {
	{0, MPI_SUCCESS}, {1, MPI_ERR_BUFFER}, {2, MPI_ERR_COUNT}, {3, MPI_ERR_TYPE}, {4, MPI_ERR_TAG}, {5, MPI_ERR_COMM},
	{6, MPI_ERR_RANK}, {7, MPI_ERR_REQUEST}, {8, MPI_ERR_ROOT}, {9, MPI_ERR_GROUP}, {10, MPI_ERR_OP},
	{11, MPI_ERR_TOPOLOGY}, {12, MPI_ERR_DIMS}, {13, MPI_ERR_ARG}, {14, MPI_ERR_UNKNOWN}, {15, MPI_ERR_TRUNCATE},
	{16, MPI_ERR_OTHER}, {17, MPI_ERR_INTERN}, {18, MPI_ERR_PENDING}, {19, MPI_ERR_IN_STATUS}, {20, MPI_ERR_ACCESS},
	{21, MPI_ERR_AMODE}, {22, MPI_ERR_ASSERT}, {23, MPI_ERR_BAD_FILE}, {24, MPI_ERR_BASE}, {25, MPI_ERR_CONVERSION},
	{26, MPI_ERR_DISP}, {27, MPI_ERR_DUP_DATAREP}, {28, MPI_ERR_FILE_EXISTS}, {29, MPI_ERR_FILE_IN_USE}, {30, MPI_ERR_FILE},
	{31, MPI_ERR_INFO_KEY}, {32, MPI_ERR_INFO_NOKEY}, {33, MPI_ERR_INFO_VALUE}, {34, MPI_ERR_INFO}, {35, MPI_ERR_IO},
	{36, MPI_ERR_KEYVAL}, {37, MPI_ERR_LOCKTYPE}, {38, MPI_ERR_NAME}, {39, MPI_ERR_NO_MEM}, {40, MPI_ERR_NOT_SAME},
	{41, MPI_ERR_NO_SPACE}, {42, MPI_ERR_NO_SUCH_FILE}, {43, MPI_ERR_PORT}, {44, MPI_ERR_QUOTA}, {45, MPI_ERR_READ_ONLY},
	{46, MPI_ERR_RMA_ATTACH}, {47, MPI_ERR_RMA_CONFLICT}, {48, MPI_ERR_RMA_RANGE}, {49, MPI_ERR_RMA_SHARED},
	{50, MPI_ERR_RMA_SYNC}, {51, MPI_ERR_SERVICE}, {52, MPI_ERR_SIZE}, {53, MPI_ERR_SPAWN},
	{54, MPI_ERR_UNSUPPORTED_DATAREP}, {55, MPI_ERR_UNSUPPORTED_OPERATION}, {56, MPI_ERR_WIN}, {57, MPI_ERR_RMA_FLAVOR},
#ifdef OPEN_MPI /* the numbers of Open MPI 5 */
	{58, 74}, {59, 79}, {60, 78}, {GOMPI_ERR_PROC_FAILED, 75}, {GOMPI_ERR_PROC_FAILED_PENDING, 76}, {GOMPI_ERR_REVOKED, 77},
#else /* of MPICH 5 */
	{58, 76}, {59, 77}, {60, 75}, {61, 80}, {62, 81}, {GOMPI_ERR_PROC_FAILED, 101}, {GOMPI_ERR_PROC_FAILED_PENDING, 102}, {GOMPI_ERR_REVOKED, 103},
#endif
};

/* The rest: constants.go. */
static const struct pair keyvals[] = {
	{0, MPI_KEYVAL_INVALID}, {501, MPI_TAG_UB}, {502, MPI_IO}, {503, MPI_HOST}, {504, MPI_WTIME_IS_GLOBAL},
	{505, MPI_APPNUM}, {506, MPI_LASTUSEDCODE}, {507, MPI_UNIVERSE_SIZE}, {601, MPI_WIN_BASE}, {602, MPI_WIN_DISP_UNIT},
	{603, MPI_WIN_SIZE}, {604, MPI_WIN_CREATE_FLAVOR}, {605, MPI_WIN_MODEL},
};
static const struct pair combiners[] = {
	{101, MPI_COMBINER_NAMED}, {102, MPI_COMBINER_DUP}, {103, MPI_COMBINER_CONTIGUOUS}, {104, MPI_COMBINER_VECTOR},
	{105, MPI_COMBINER_HVECTOR}, {106, MPI_COMBINER_INDEXED}, {107, MPI_COMBINER_HINDEXED},
	{108, MPI_COMBINER_INDEXED_BLOCK}, {109, MPI_COMBINER_HINDEXED_BLOCK}, {110, MPI_COMBINER_STRUCT},
	{111, MPI_COMBINER_SUBARRAY}, {112, MPI_COMBINER_DARRAY}, {113, MPI_COMBINER_F90_REAL},
	{114, MPI_COMBINER_F90_COMPLEX}, {115, MPI_COMBINER_F90_INTEGER}, {116, MPI_COMBINER_RESIZED},
};
static const struct pair orders[] = {{12, MPI_ORDER_C}, {15, MPI_ORDER_FORTRAN}};
static const struct pair typeclasses[] = {
	{192, MPI_TYPECLASS_INTEGER}, {193, MPI_TYPECLASS_REAL}, {194, MPI_TYPECLASS_COMPLEX},
};
static const struct pair splittypes[] = {
	{GOMPI_SPLIT_SHARED, MPI_COMM_TYPE_SHARED}, {GOMPI_UNDEFINED, MPI_UNDEFINED},
#ifdef MPI_COMM_TYPE_HW_GUIDED
	{GOMPI_SPLIT_GUIDED, MPI_COMM_TYPE_HW_GUIDED}, {GOMPI_SPLIT_UNGUIDED, MPI_COMM_TYPE_HW_UNGUIDED},
#endif
#ifdef MPIX_COMM_TYPE_NEIGHBORHOOD
	{GOMPI_SPLIT_GUIDED, MPIX_COMM_TYPE_NEIGHBORHOOD},
#endif
};
static const struct pair topologies[] = {
	{GOMPI_UNDEFINED, MPI_UNDEFINED}, {GOMPI_CART_TOPOLOGY, MPI_CART}, {GOMPI_GRAPH_TOPOLOGY, MPI_GRAPH}, {GOMPI_DIST_GRAPH_TOPOLOGY, MPI_DIST_GRAPH},
};
static const struct pair whences[] = {{401, MPI_SEEK_CUR}, {402, MPI_SEEK_END}, {403, MPI_SEEK_SET}};
static const struct pair amodes[] = { /* bits */
	{1, MPI_MODE_APPEND}, {2, MPI_MODE_CREATE}, {4, MPI_MODE_DELETE_ON_CLOSE}, {8, MPI_MODE_EXCL}, {16, MPI_MODE_RDONLY},
	{32, MPI_MODE_RDWR}, {64, MPI_MODE_SEQUENTIAL}, {128, MPI_MODE_UNIQUE_OPEN}, {256, MPI_MODE_WRONLY},
};

static const struct pair locktypes[] = {{GOMPI_LOCK_EXCLUSIVE, MPI_LOCK_EXCLUSIVE}, {GOMPI_LOCK_SHARED, MPI_LOCK_SHARED}};

#define LIST(list) {list, sizeof list / sizeof *list}
static const struct {
	const struct pair *list;
	int n;
} enumerations[ENUMS] = {
	[ENUM_code] = LIST(codes), [ENUM_keyval] = LIST(keyvals), [ENUM_combiner] = LIST(combiners),
	[ENUM_order] = LIST(orders), [ENUM_typeclass] = LIST(typeclasses), [ENUM_splittype] = LIST(splittypes),
	[ENUM_topology] = LIST(topologies), [ENUM_whence] = LIST(whences),
	[ENUM_locktype] = LIST(locktypes),
};

/* Numbers in no list are the program's: codes are shifted behind those of mpi.h, others cross as they are. */
int gompi_constant_in(int enumeration, int x)
{
	for (int i = 0; i < enumerations[enumeration].n; i++)
		if (enumerations[enumeration].list[i].face == x)
			return enumerations[enumeration].list[i].core;
	if (enumeration == ENUM_code)
		return x > MPI_ERR_LASTCODE ? x - MPI_ERR_LASTCODE - 1 + GOMPI_FIRST_CODE : GOMPI_BAD;
	return x;
}

int gompi_constant_out(int enumeration, gompi_word x)
{
	for (int i = 0; i < enumerations[enumeration].n; i++)
		if (enumerations[enumeration].list[i].core == x)
			return enumerations[enumeration].list[i].face;
	if (enumeration == ENUM_code)
		return x >= GOMPI_FIRST_CODE ? (int)(x - GOMPI_FIRST_CODE + MPI_ERR_LASTCODE + 1) : MPI_ERR_OTHER;
	return (int)x;
}

int gompi_amode_in(int mode)
{
	int core = 0;
	for (size_t i = 0; i < sizeof amodes / sizeof *amodes; i++)
		if (mode & amodes[i].face)
			core |= amodes[i].core, mode &= ~amodes[i].face;
	return mode ? GOMPI_BAD : core;
}

int gompi_amode_out(gompi_word mode)
{
	int face = 0;
	for (size_t i = 0; i < sizeof amodes / sizeof *amodes; i++)
		if (mode & amodes[i].core)
			face |= amodes[i].face;
	return face;
}
#endif

/* ---- Statuses: bytes and the mark of a cancelled one are in fields of each face's own ---- */

#if defined GOMPI_STANDARD
static int64_t bytes_in(const MPI_Status *p)
{
	int64_t n;
	memcpy(&n, p->MPI_internal, sizeof n);
	return n;
}
#define BYTES_IN(p) bytes_in(p)
#define BYTES_OUT(p, n) memcpy((p)->MPI_internal, &(int64_t){n}, sizeof(int64_t))
#define CANCELLED_IN(p) ((p)->MPI_internal[2])
#define CANCELLED_OUT(p, c) ((p)->MPI_internal[2] = (c))
#elif defined OPEN_MPI
#define BYTES_IN(p) ((int64_t)(p)->_ucount)
#define BYTES_OUT(p, n) ((p)->_ucount = (size_t)(n))
#define CANCELLED_IN(p) ((p)->_cancelled)
#define CANCELLED_OUT(p, c) ((p)->_cancelled = (c))
#else
#define BYTES_IN(p) ((int64_t)(uint32_t)(p)->count_lo | (int64_t)((uint32_t)(p)->count_hi_and_cancelled >> 1) << 32)
#define BYTES_OUT(p, n) \
	((p)->count_lo = (int)(n), \
	 (p)->count_hi_and_cancelled = (int)((uint32_t)((uint64_t)(n) >> 32) << 1 | ((uint32_t)(p)->count_hi_and_cancelled & 1)))
#define CANCELLED_IN(p) ((p)->count_hi_and_cancelled & 1)
#define CANCELLED_OUT(p, c) ((p)->count_hi_and_cancelled = ((p)->count_hi_and_cancelled & ~1) | ((c) != 0))
#endif

void gompi_status_in(struct gompi_status *s, const MPI_Status *p)
{
	s->error = s->cancelled = -1;
	if (p == MPI_STATUS_IGNORE)
		return;
	s->source = (int32_t)(p->MPI_SOURCE == MPI_ANY_SOURCE ? GOMPI_ANY_SOURCE : IN_rank(p->MPI_SOURCE));
	s->tag = (int32_t)IN_tag(p->MPI_TAG);
	s->cancelled = CANCELLED_IN(p);
	s->bytes = BYTES_IN(p);
}

void gompi_status_out(MPI_Status *p, const struct gompi_status *s)
{
	if (s->error >= 0)
		p->MPI_ERROR = gompi_constant_out(ENUM_code, s->error);
	if (s->cancelled < 0)
		return;
	p->MPI_SOURCE = gompi_rank_out(s->source);
	p->MPI_TAG = gompi_tag_out(s->tag);
	BYTES_OUT(p, s->bytes);
	CANCELLED_OUT(p, s->cancelled);
}

/* MPI 4.1's access to the fields that programs know. */
#define FIELD(name, field) \
	GOMPI_ALIAS(Status_get_##name) \
	GOMPI_ALIAS(Status_set_##name) \
	int PMPI_Status_get_##name(const MPI_Status *s, int *x) { return *x = s->field, MPI_SUCCESS; } \
	int PMPI_Status_set_##name(MPI_Status *s, int x) { return s->field = x, MPI_SUCCESS; }
FIELD(source, MPI_SOURCE)
FIELD(tag, MPI_TAG)
FIELD(error, MPI_ERROR)

#ifndef GOMPI_STANDARD
/* A Fortran status is an array with the fields of C's. */
GOMPI_ALIAS(Status_c2f)
int PMPI_Status_c2f(const MPI_Status *c, MPI_Fint *f)
{
	memcpy(f, c, sizeof *c);
	return MPI_SUCCESS;
}

GOMPI_ALIAS(Status_f2c)
int PMPI_Status_f2c(const MPI_Fint *f, MPI_Status *c)
{
	memcpy(c, f, sizeof *c);
	return MPI_SUCCESS;
}
#endif
