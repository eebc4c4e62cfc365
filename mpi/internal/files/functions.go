package files

import (
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/dtypes"
	"gompi/mpi/internal/p2p"
)

// The functions that move data. Collective functions that are not in order need no messages,
// except blocking ones while some view has short runs.

func FileReadAt(f *File, offset int, buf abi.Addr, n int, t *dtypes.Datatype, st *abi.Status) error {
	return f.block(reads, at(offset), buf, n, t, st)
}

func FileReadAtAll(f *File, offset int, buf abi.Addr, n int, t *dtypes.Datatype, st *abi.Status) error {
	return f.blockAll(reads, at(offset), buf, n, t, st)
}

func FileRead(f *File, buf abi.Addr, n int, t *dtypes.Datatype, st *abi.Status) error {
	return f.block(reads, atPointer, buf, n, t, st)
}

func FileReadAll(f *File, buf abi.Addr, n int, t *dtypes.Datatype, st *abi.Status) error {
	return f.blockAll(reads, atPointer, buf, n, t, st)
}

func FileReadShared(f *File, buf abi.Addr, n int, t *dtypes.Datatype, st *abi.Status) error {
	return f.block(reads, atShared, buf, n, t, st)
}

func FileReadOrdered(f *File, buf abi.Addr, n int, t *dtypes.Datatype, st *abi.Status) error {
	return f.block(reads, inOrder, buf, n, t, st)
}

func FileIreadAt(f *File, offset int, buf abi.Addr, n int, t *dtypes.Datatype) (*p2p.Request, error) {
	return f.start(reads, at(offset), buf, n, t)
}

func FileIreadAtAll(f *File, offset int, buf abi.Addr, n int, t *dtypes.Datatype) (*p2p.Request, error) {
	return f.start(reads, at(offset), buf, n, t)
}

func FileIread(f *File, buf abi.Addr, n int, t *dtypes.Datatype) (*p2p.Request, error) {
	return f.start(reads, atPointer, buf, n, t)
}

func FileIreadAll(f *File, buf abi.Addr, n int, t *dtypes.Datatype) (*p2p.Request, error) {
	return f.start(reads, atPointer, buf, n, t)
}

func FileIreadShared(f *File, buf abi.Addr, n int, t *dtypes.Datatype) (*p2p.Request, error) {
	return f.start(reads, atShared, buf, n, t)
}

func FileReadAtAllBegin(f *File, offset int, buf abi.Addr, n int, t *dtypes.Datatype) error {
	return f.beginSplit("MPI_File_read_at_all", reads, at(offset), buf, n, t)
}

func FileReadAtAllEnd(f *File, buf abi.Addr, st *abi.Status) error {
	return f.endSplit("MPI_File_read_at_all", st)
}

func FileReadAllBegin(f *File, buf abi.Addr, n int, t *dtypes.Datatype) error {
	return f.beginSplit("MPI_File_read_all", reads, atPointer, buf, n, t)
}

func FileReadAllEnd(f *File, buf abi.Addr, st *abi.Status) error {
	return f.endSplit("MPI_File_read_all", st)
}

func FileReadOrderedBegin(f *File, buf abi.Addr, n int, t *dtypes.Datatype) error {
	return f.beginSplit("MPI_File_read_ordered", reads, inOrder, buf, n, t)
}

func FileReadOrderedEnd(f *File, buf abi.Addr, st *abi.Status) error {
	return f.endSplit("MPI_File_read_ordered", st)
}

func FileWriteAt(f *File, offset int, buf abi.Addr, n int, t *dtypes.Datatype, st *abi.Status) error {
	return f.block(writes, at(offset), buf, n, t, st)
}

func FileWriteAtAll(f *File, offset int, buf abi.Addr, n int, t *dtypes.Datatype, st *abi.Status) error {
	return f.blockAll(writes, at(offset), buf, n, t, st)
}

func FileWrite(f *File, buf abi.Addr, n int, t *dtypes.Datatype, st *abi.Status) error {
	return f.block(writes, atPointer, buf, n, t, st)
}

func FileWriteAll(f *File, buf abi.Addr, n int, t *dtypes.Datatype, st *abi.Status) error {
	return f.blockAll(writes, atPointer, buf, n, t, st)
}

func FileWriteShared(f *File, buf abi.Addr, n int, t *dtypes.Datatype, st *abi.Status) error {
	return f.block(writes, atShared, buf, n, t, st)
}

func FileWriteOrdered(f *File, buf abi.Addr, n int, t *dtypes.Datatype, st *abi.Status) error {
	return f.block(writes, inOrder, buf, n, t, st)
}

func FileIwriteAt(f *File, offset int, buf abi.Addr, n int, t *dtypes.Datatype) (*p2p.Request, error) {
	return f.start(writes, at(offset), buf, n, t)
}

func FileIwriteAtAll(f *File, offset int, buf abi.Addr, n int, t *dtypes.Datatype) (*p2p.Request, error) {
	return f.start(writes, at(offset), buf, n, t)
}

func FileIwrite(f *File, buf abi.Addr, n int, t *dtypes.Datatype) (*p2p.Request, error) {
	return f.start(writes, atPointer, buf, n, t)
}

func FileIwriteAll(f *File, buf abi.Addr, n int, t *dtypes.Datatype) (*p2p.Request, error) {
	return f.start(writes, atPointer, buf, n, t)
}

func FileIwriteShared(f *File, buf abi.Addr, n int, t *dtypes.Datatype) (*p2p.Request, error) {
	return f.start(writes, atShared, buf, n, t)
}

func FileWriteAtAllBegin(f *File, offset int, buf abi.Addr, n int, t *dtypes.Datatype) error {
	return f.beginSplit("MPI_File_write_at_all", writes, at(offset), buf, n, t)
}

func FileWriteAtAllEnd(f *File, buf abi.Addr, st *abi.Status) error {
	return f.endSplit("MPI_File_write_at_all", st)
}

func FileWriteAllBegin(f *File, buf abi.Addr, n int, t *dtypes.Datatype) error {
	return f.beginSplit("MPI_File_write_all", writes, atPointer, buf, n, t)
}

func FileWriteAllEnd(f *File, buf abi.Addr, st *abi.Status) error {
	return f.endSplit("MPI_File_write_all", st)
}

func FileWriteOrderedBegin(f *File, buf abi.Addr, n int, t *dtypes.Datatype) error {
	return f.beginSplit("MPI_File_write_ordered", writes, inOrder, buf, n, t)
}

func FileWriteOrderedEnd(f *File, buf abi.Addr, st *abi.Status) error {
	return f.endSplit("MPI_File_write_ordered", st)
}
