package mpi

import "gompi/comm"

// ofProcNull is what a receive from MPI_PROC_NULL gets, ofNothing what a null or inactive request
// does: the empty status.
var (
	ofProcNull = Status{Source: procNull, Tag: anyTag}
	ofNothing  = Status{Source: anySource, Tag: anyTag}
)

// set stores a status, but for its error. s is nil if it is to be ignored.
func (s *Status) set(to Status) {
	if s != nil {
		to.Error = s.Error
		*s = to
	}
}

// statusOf returns what comm says of a message.
func (c *Comm) statusOf(st comm.Status) Status {
	s := Status{Source: int32(st.Source), Tag: int32(st.Tag), Bytes: int64(st.Bytes)}
	switch {
	case st.Source == comm.AnySource:
		s.Source = anySource
	default:
		s.Source -= int32(c.shift)
	}
	if st.Tag == comm.AnyTag {
		s.Tag = anyTag
	}
	return s
}

func GetCount(st *Status, t *Datatype) (int, error) {
	if t == nil {
		return 0, wrong(errType, "the datatype is not valid")
	}
	return t.Count(int(st.Bytes)), nil
}

func GetElements(st *Status, t *Datatype) (int, error) {
	if t == nil {
		return 0, wrong(errType, "the datatype is not valid")
	}
	return t.Elements(int(st.Bytes)), nil
}

func GetElementsX(st *Status, t *Datatype) (int, error) { return GetElements(st, t) }

func StatusSetElements(st *Status, t *Datatype, n int) error {
	if err := checkData(n, t); err != nil {
		return err
	}
	st.Bytes = int64(t.Bytes(n))
	return nil
}

func StatusSetElementsX(st *Status, t *Datatype, n int) error { return StatusSetElements(st, t, n) }

func StatusSetCancelled(st *Status, flag bool) error {
	st.Cancelled = 0
	if flag {
		st.Cancelled = 1
	}
	return nil
}

func TestCancelled(st *Status) (bool, error) { return st.Cancelled > 0, nil }
