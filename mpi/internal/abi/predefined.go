package abi

// A Predefined is a handle of MPI's that is no datatype, with its number in the standard's binary
// interface (MPI 5.0). The programs' handles have numbers from FirstHandle on.
type Predefined struct {
	Kind string
	Name string
	ID   int
}

// FirstHandle is the lowest number of a handle that is not predefined.
//
//c:const GOMPI_
const FirstHandle = 0x1000

// The numbers of handles that code names.
//
//c:const GOMPI_ID_
const (
	CommNull       = 0x100
	CommWorld      = 0x101
	CommSelf       = 0x102
	GroupNull      = 0x108
	GroupEmpty     = 0x109
	InfoNull       = 0x130
	InfoEnv        = 0x131
	ErrhandlerNull = 0x140
	ErrorsAreFatal = 0x141
	ErrorsAbort    = 0x142
	ErrorsReturn   = 0x143
	ErrorsThrow    = 0x144 // returns: MPICH's C++ bindings throw exceptions
	FileNull       = 0x118
	WinNull        = 0x110
	SessionNull    = 0x120
	MessageNull    = 0x128
	MessageNoProc  = 0x129
	RequestNull    = 0x180
	RequestDone    = 0x181 // gompi's: of an operation that was complete at its start
	FirstHeld      = 0x800 // gompi's: of receives that the face holds, up to FirstHandle
	DatatypeNull   = 0x200
	OpNull         = 0x20
	opSum, opMin   = 0x21, 0x22
	opMax, opProd  = 0x23, 0x24
	opBand, opBor  = 0x28, 0x29
	opBxor         = 0x2a
	opLand, opLor  = 0x30, 0x31
	opLxor         = 0x32
	opMinloc       = 0x38
	opMaxloc       = 0x39
	OpReplace      = 0x3c
	OpNothing      = 0x3d // MPI_NO_OP
)

// Handles returns all predefined handles but datatypes.
func Handles() []Predefined {
	return []Predefined{
		{"comm", "MPI_COMM_NULL", CommNull}, {"comm", "MPI_COMM_WORLD", CommWorld}, {"comm", "MPI_COMM_SELF", CommSelf},
		{"group", "MPI_GROUP_NULL", GroupNull}, {"group", "MPI_GROUP_EMPTY", GroupEmpty},
		{"session", "MPI_SESSION_NULL", SessionNull}, {"file", "MPI_FILE_NULL", FileNull},
		{"win", "MPI_WIN_NULL", WinNull},
		{"info", "MPI_INFO_NULL", InfoNull}, {"info", "MPI_INFO_ENV", InfoEnv},
		{"errhandler", "MPI_ERRHANDLER_NULL", ErrhandlerNull}, {"errhandler", "MPI_ERRORS_ARE_FATAL", ErrorsAreFatal},
		{"errhandler", "MPI_ERRORS_ABORT", ErrorsAbort}, {"errhandler", "MPI_ERRORS_RETURN", ErrorsReturn},
		{"errhandler", "MPIR_ERRORS_THROW_EXCEPTIONS", ErrorsThrow},
		{"message", "MPI_MESSAGE_NULL", MessageNull}, {"message", "MPI_MESSAGE_NO_PROC", MessageNoProc},
		{"request", "MPI_REQUEST_NULL", RequestNull},
		{"op", "MPI_OP_NULL", OpNull}, {"op", "MPI_SUM", opSum}, {"op", "MPI_MIN", opMin}, {"op", "MPI_MAX", opMax},
		{"op", "MPI_PROD", opProd}, {"op", "MPI_BAND", opBand}, {"op", "MPI_BOR", opBor}, {"op", "MPI_BXOR", opBxor},
		{"op", "MPI_LAND", opLand}, {"op", "MPI_LOR", opLor}, {"op", "MPI_LXOR", opLxor},
		{"op", "MPI_MINLOC", opMinloc}, {"op", "MPI_MAXLOC", opMaxloc},
		{"op", "MPI_REPLACE", OpReplace}, {"op", "MPI_NO_OP", OpNothing},
	}
}
