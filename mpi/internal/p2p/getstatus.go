package p2p

import (
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/errs"
)

// An outcome is the state of a request that stays as it is.
type outcome struct {
	active, over bool // null and inactive requests are over
	st           abi.Status
}

// store stores o's status, with MPI_SUCCESS, which the empty status has. st is nil if ignored.
func (o *outcome) store(st *abi.Status) {
	if st != nil {
		*st = o.st
	}
}

func outcomeOf(h abi.Handle) (outcome, error) {
	if h == abi.RequestDone {
		return outcome{active: true, over: true, st: abi.OfNothing}, nil
	}
	r, err := active(&h)
	switch {
	case r == nil:
		return outcome{over: true, st: abi.OfNothing}, err
	case r.test():
		o := outcome{active: true, over: true}
		if err := r.show(&o.st); r.user != nil && err != nil {
			return o, err
		}
		return o, nil
	}
	return outcome{active: true}, nil
}

// outcomesOf asks all requests, so that all of them move on.
func outcomesOf(n int, hs []abi.Handle) (all []outcome, someActive bool, err error) {
	if err := checkRequests(n); err != nil {
		return nil, false, err
	}
	for _, h := range hs {
		o, err := outcomeOf(h)
		if err != nil {
			return nil, false, err
		}
		all, someActive = append(all, o), someActive || o.active
	}
	return all, someActive, nil
}

// RequestGetStatusAll stores statuses when all are over.
func RequestGetStatusAll(n int, hs []abi.Handle, sts []abi.Status) (bool, error) {
	all, _, err := outcomesOf(n, hs)
	if err != nil {
		return false, err
	}
	for _, o := range all {
		if !o.over {
			return false, nil
		}
	}
	for i := range sts {
		all[i].store(&sts[i])
	}
	return true, nil
}

// RequestGetStatusAny returns the first that is over.
func RequestGetStatusAny(n int, hs []abi.Handle, st *abi.Status) (index int, flag bool, err error) {
	all, someActive, err := outcomesOf(n, hs)
	if err != nil {
		return abi.Undefined, false, err
	}
	for i, o := range all {
		if o.active && o.over {
			o.store(st)
			return i, true, nil
		}
	}
	if !someActive {
		(&outcome{st: abi.OfNothing}).store(st)
	}
	return abi.Undefined, !someActive, nil
}

// RequestGetStatusSome returns the number of complete requests, and stores their indices.
func RequestGetStatusSome(n int, hs []abi.Handle, indices abi.Array, sts []abi.Status) (int, error) {
	if n > 0 && indices == 0 {
		return 0, errs.New(errs.Arg, "the indices are NULL")
	}
	all, someActive, err := outcomesOf(n, hs)
	if err != nil || !someActive {
		return abi.Undefined, err
	}
	done := 0
	for i, o := range all {
		if !o.active || !o.over {
			continue
		}
		indices.Ints(n)[done] = int32(i)
		if sts != nil {
			o.store(&sts[done])
		}
		done++
	}
	return done, nil
}
