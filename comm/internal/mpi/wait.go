package mpi

import (
	"gompi/comm"
	"gompi/comm/internal/mpi/table"
)

// pending appends the operations to rs that the requests wait for. It fails if one is not valid.
func pending(rs []comm.Request, hs []Handle) ([]comm.Request, error) {
	for i := range hs {
		if hs[i] == table.RequestNull || hs[i] == table.RequestDone {
			continue
		}
		r, err := active(&hs[i])
		if err != nil {
			return nil, err
		}
		if r != nil && !r.over {
			rs = append(append(rs, r.op), r.others...)
		}
	}
	return rs, nil
}

func checkRequests(n int) error {
	if n < 0 {
		return wrong(errCount, "the count is %d: want 0 or more", n)
	}
	return nil
}

func Waitall(n int, hs []Handle, sts []Status) error {
	if err := checkRequests(n); err != nil {
		return err
	}
	for i := range hs { // before anything is reported
		if hs[i] != table.RequestNull && hs[i] != table.RequestDone && requests.find(hs[i]) == nil {
			return wrong(errRequest, "request %d is not valid", i)
		}
	}
	return reportAll(hs, sts)
}

// reportAll waits for each request and reports its outcome. (comm.WaitAll would take their
// statuses.)
func reportAll(hs []Handle, sts []Status) (first error) {
	for i := range hs {
		var st *Status
		if sts != nil {
			st = &sts[i]
		}
		r, err := active(&hs[i])
		if r == nil {
			st.set(ofNothing)
		} else {
			r.await()
			err = retire(&hs[i], r, st)
		}
		if st != nil {
			st.Error = int32(classOf(err))
		}
		if first == nil {
			first = err
		}
	}
	return inStatus(first, sts)
}

// inStatus returns the error of a call that stores one for each request.
func inStatus(err error, sts []Status) error {
	if err == nil || sts == nil {
		return err
	}
	return &Error{Class: errInStatus, Cause: err}
}

func Testall(n int, hs []Handle, sts []Status) (bool, error) {
	if err := checkRequests(n); err != nil {
		return false, err
	}
	done := true
	for i := range hs {
		if hs[i] == table.RequestNull || hs[i] == table.RequestDone {
			continue
		}
		r, err := active(&hs[i])
		if err != nil {
			return false, err
		}
		done = (r == nil || r.test()) && done
	}
	if !done {
		return false, nil
	}
	return true, reportAll(hs, sts)
}

// Testany returns the first that is over.
func Testany(n int, hs []Handle, st *Status) (index int, flag bool, err error) {
	if err := checkRequests(n); err != nil {
		return undefined, false, err
	}
	some := false
	for i := range hs {
		if hs[i] == table.RequestDone {
			hs[i] = table.RequestNull
			st.set(ofNothing)
			return i, true, nil
		}
		r, err := active(&hs[i])
		switch {
		case err != nil:
			return undefined, false, err
		case r == nil:
			continue
		case r.test():
			return i, true, retire(&hs[i], r, st)
		}
		some = true
	}
	if !some {
		st.set(ofNothing)
	}
	return undefined, !some, nil
}

func Waitany(n int, hs []Handle, st *Status) (int, error) {
	for {
		i, done, err := Testany(n, hs, st)
		if done || err != nil {
			return i, err
		}
		if err := awaitOne(hs); err != nil {
			return undefined, err
		}
	}
}

// awaitOne waits until something has changed for one of the requests, of which at least one is
// active.
func awaitOne(hs []Handle) error {
	var few [64]comm.Request
	rs, err := pending(few[:0], hs)
	if err != nil {
		return err
	}
	live := rs[:0]
	for _, r := range rs {
		if !r.Done() {
			live = append(live, r)
		}
	}
	if len(live) > 0 {
		_, err = comm.WaitSome(forever, live...)
	}
	return err
}

// Testsome returns how many are over, and stores which: indices has room for n.
func Testsome(n int, hs []Handle, indices Array, sts []Status) (int, error) {
	if err := checkRequests(n); err != nil {
		return 0, err
	}
	if n > 0 && indices == 0 {
		return 0, wrong(errArg, "the indices are NULL")
	}
	at, some, done := indices.ints(n), false, 0
	var first error
	for i := range hs {
		was := hs[i]
		r, err := active(&hs[i])
		if err != nil {
			return 0, err
		}
		if r == nil && was != table.RequestDone {
			continue
		}
		some = true
		if r != nil && !r.test() {
			continue
		}
		var st *Status
		if sts != nil {
			st = &sts[done]
		}
		if r == nil {
			st.set(ofNothing)
		} else {
			err = retire(&hs[i], r, st)
		}
		if st != nil {
			st.Error = int32(classOf(err))
		}
		if first == nil {
			first = err
		}
		at[done] = int32(i)
		done++
	}
	if !some {
		return undefined, nil
	}
	return done, inStatus(first, sts)
}

func Waitsome(n int, hs []Handle, indices Array, sts []Status) (int, error) {
	for {
		k, err := Testsome(n, hs, indices, sts)
		if k != 0 || err != nil {
			return k, err
		}
		if err := awaitOne(hs); err != nil {
			return 0, err
		}
	}
}
