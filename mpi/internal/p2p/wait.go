package p2p

import (
	"gompi/internal/core"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/errs"
)

// pending appends the operations to rs that the requests wait for, and fails if a request is not
// valid.
func pending(rs []core.Request, hs []abi.Handle) ([]core.Request, error) {
	for i := range hs {
		if hs[i] == abi.RequestNull || hs[i] == abi.RequestDone {
			continue
		}
		r, err := active(&hs[i])
		if err != nil {
			return nil, err
		}
		if r != nil && !r.over {
			rs = append(append(rs, r.Op), r.Others...)
		}
	}
	return rs, nil
}

func checkRequests(n int) error {
	if n < 0 {
		return errs.New(errs.Count, "the count is %d: want 0 or more", n)
	}
	return nil
}

func Waitall(n int, hs []abi.Handle, sts []abi.Status) error {
	if err := checkRequests(n); err != nil {
		return err
	}
	for i := range hs { // before anything is reported
		if hs[i] != abi.RequestNull && hs[i] != abi.RequestDone && Requests.Find(hs[i]) == nil {
			return errs.New(errs.Request, "request %d is not valid", i)
		}
	}
	return reportAll(hs, sts)
}

// reportAll waits for all requests and reports their outcomes. A single wait for all is shorter
// than consecutive waits, between which the drive is handed to a goroutine in the background.
func reportAll(hs []abi.Handle, sts []abi.Status) (first error) {
	var few [64]core.Request
	if rs, err := pending(few[:0], hs); err == nil {
		_ = comms.World.P2P.AwaitAll(comms.Forever, rs) // which never ends
	}
	for i := range hs {
		var st *abi.Status
		if sts != nil {
			st = &sts[i]
		}
		r, err := active(&hs[i])
		if r == nil {
			st.Set(abi.OfNothing)
		} else {
			r.await(comms.Forever)
			err = retire(&hs[i], r, st)
		}
		if st != nil {
			st.Error = int32(errs.ClassOf(err))
		}
		if first == nil {
			first = err
		}
	}
	return inStatus(first, sts)
}

// inStatus returns the error of a call that stores an error for each request.
func inStatus(err error, sts []abi.Status) error {
	if err == nil || sts == nil {
		return err
	}
	return &errs.Error{Class: errs.InStatus, Cause: err}
}

func Testall(n int, hs []abi.Handle, sts []abi.Status) (bool, error) {
	if err := checkRequests(n); err != nil {
		return false, err
	}
	done := true
	for i := range hs {
		if hs[i] == abi.RequestNull || hs[i] == abi.RequestDone {
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
func Testany(n int, hs []abi.Handle, st *abi.Status) (index int, flag bool, err error) {
	if err := checkRequests(n); err != nil {
		return abi.Undefined, false, err
	}
	some := false
	for i := range hs {
		if hs[i] == abi.RequestDone {
			hs[i] = abi.RequestNull
			st.Set(abi.OfNothing)
			return i, true, nil
		}
		r, err := active(&hs[i])
		switch {
		case err != nil:
			return abi.Undefined, false, err
		case r == nil:
			continue
		case r.test():
			return i, true, retire(&hs[i], r, st)
		}
		some = true
	}
	if !some {
		st.Set(abi.OfNothing)
	}
	return abi.Undefined, !some, nil
}

func Waitany(n int, hs []abi.Handle, st *abi.Status) (int, error) {
	for {
		i, done, err := Testany(n, hs, st)
		if done || err != nil {
			return i, err
		}
		if err := awaitOne(hs); err != nil {
			return abi.Undefined, err
		}
	}
}

// awaitOne waits until one of the requests, at least one of them active, may have completed. It
// returns at once if a request has completed since the caller's test.
func awaitOne(hs []abi.Handle) error {
	var few [64]core.Request
	live := few[:0]
	for i := range hs {
		if hs[i] == abi.RequestNull || hs[i] == abi.RequestDone {
			continue
		}
		r, err := active(&hs[i])
		if err != nil {
			return err
		}
		if r == nil {
			continue
		}
		before := len(live)
		if live = r.appendLive(live); len(live) == before {
			return nil
		}
	}
	_, err := core.WaitSome(comms.Forever, live)
	return err
}

// appendLive appends to ops the incomplete operations that r waits for.
func (r *Request) appendLive(ops []core.Request) []core.Request {
	if r.over {
		return ops
	}
	for _, o := range r.Others {
		if !o.Done() {
			ops = append(ops, o)
		}
	}
	if !r.Op.Done() {
		ops = append(ops, r.Op)
	}
	return ops
}

// Testsome returns the number of complete requests, and stores their indices.
func Testsome(n int, hs []abi.Handle, indices abi.Array, sts []abi.Status) (int, error) {
	if err := checkRequests(n); err != nil {
		return 0, err
	}
	if n > 0 && indices == 0 {
		return 0, errs.New(errs.Arg, "the indices are NULL")
	}
	at, some, done := indices.Ints(n), false, 0
	var first error
	for i := range hs {
		was := hs[i]
		r, err := active(&hs[i])
		if err != nil {
			return 0, err
		}
		if r == nil && was != abi.RequestDone {
			continue
		}
		some = true
		if r != nil && !r.test() {
			continue
		}
		var st *abi.Status
		if sts != nil {
			st = &sts[done]
		}
		if r == nil {
			st.Set(abi.OfNothing)
		} else {
			err = retire(&hs[i], r, st)
		}
		if st != nil {
			st.Error = int32(errs.ClassOf(err))
		}
		if first == nil {
			first = err
		}
		at[done] = int32(i)
		done++
	}
	if !some {
		return abi.Undefined, nil
	}
	return done, inStatus(first, sts)
}

func Waitsome(n int, hs []abi.Handle, indices abi.Array, sts []abi.Status) (int, error) {
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
