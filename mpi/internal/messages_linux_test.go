package mpi

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/errs"
)

func init() {
	jobs["messages"] = allMessages
	jobs["alone"] = allAlone
	jobs["cancelled"] = allCancelled
	jobs["pending"] = leavesPending
}

func TestMessagesAndRequests(t *testing.T) {
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			ranks(t, n, "messages")
		})
	}
}

// What needs no peer.
func TestOneRankAlone(t *testing.T) { ranks(t, 1, "alone") }

// TestCancelledRequests: a receive is cancelled before another thread waits for it, and meanwhile.
// The request of a send that is over stays what it is.
func TestCancelledRequests(t *testing.T) { ranks(t, 1, "cancelled") }

// TestMessagesThatNeverMatchAtTheEnd: a job ends well although communicators that were freed have
// messages under way.
func TestMessagesThatNeverMatchAtTheEnd(t *testing.T) {
	for _, transport := range []string{"", "tcp"} {
		ranks(t, 2, "pending", "GOMPI_TRANSPORT="+transport)
	}
}

func leavesPending() error {
	const long = 1 << 20
	peer := 1 - comms.World.P2P.Rank()
	sent := addr(make([]int32, long))
	b := func() abi.Addr { return addr(make([]int32, 1)) } // pending receives have no buffer in common
	requests := make([]abi.Handle, 7)
	var received, freed, both, cross, started, inactive, probed, message abi.Handle
	return errors.Join(
		do("Comm_dup", world0, &received), do("Irecv", b(), 1, intHandle, abi.AnySource, 7, received, &requests[0]),
		do("Comm_free", &received),
		do("Comm_dup", world0, &freed), do("Irecv", b(), 1, intHandle, peer, 7, freed, &requests[1]),
		do("Request_free", &requests[1]),
		do("Barrier", freed), do("Comm_free", &freed),
		do("Comm_dup", world0, &both), do("Isend", sent, long, intHandle, peer, 7, both, &requests[2]),
		do("Comm_free", &both),
		do("Comm_dup", world0, &cross), do("Isend", sent, long, intHandle, peer, 7, cross, &requests[3]),
		do("Irecv", b(), 1, intHandle, peer, 8, cross, &requests[0]), do("Comm_free", &cross),
		do("Comm_dup", world0, &started), do("Recv_init", b(), 1, intHandle, peer, 7, started, &requests[4]),
		do("Start", &requests[4]), do("Comm_free", &started), do("Request_free", &requests[4]),
		do("Comm_dup", world0, &inactive), do("Recv_init", b(), 1, intHandle, peer, 7, inactive, &requests[5]),
		do("Comm_free", &inactive),
		do("Comm_dup", world0, &probed), do("Isend", b(), 1, intHandle, peer, 7, probed, &requests[6]),
		do("Mprobe", peer, 7, probed, &message, nil), do("Comm_free", &probed))
}

func allCancelled() error {
	b := make([]int32, 1)
	var failed []error
	for _, wait := range []func(h *abi.Handle, st *abi.Status) error{
		func(h *abi.Handle, st *abi.Status) error { return do("Wait", h, st) },
		func(h *abi.Handle, st *abi.Status) error {
			hs, sts := []abi.Handle{*h, abi.RequestNull}, make([]abi.Status, 2)
			err := do("Waitall", 2, hs, sts)
			*h, *st = hs[0], sts[0]
			return err
		},
		func(h *abi.Handle, st *abi.Status) error {
			index := 0
			hs := []abi.Handle{abi.RequestNull, *h}
			err := do("Waitany", 2, hs, &index, st)
			*h = hs[1]
			return err
		},
		func(h *abi.Handle, st *abi.Status) error {
			for flag := 0; flag == 0; {
				if err := do("Test", h, &flag, st); err != nil {
					return err
				}
			}
			return nil
		},
		func(h *abi.Handle, st *abi.Status) error {
			for flag := 0; flag == 0; {
				if err := do("Request_get_status", *h, &flag, st); err != nil {
					return err
				}
			}
			return do("Wait", h, nil)
		},
	} {
		for range 200 {
			failed = append(failed, cancelDuring(addr(b), wait))
		}
	}
	var h, sent abi.Handle
	return errors.Join(append(failed,
		do("Irecv", addr(b), 1, intHandle, 0, 1, world0, &h),
		do("Isend", addr(make([]int32, 1)), 1, intHandle, 0, 1, world0, &sent), wants("send", &sent, abi.Handle(abi.RequestDone)),
		do("Cancel", &sent), wants("send", &sent, abi.Handle(abi.RequestDone)),
		do("Request_free", &sent), wants("send", &sent, abi.Handle(abi.RequestNull)), do("Wait", &h, nil))...)
}

// cancelDuring cancels a receive while another thread waits for it, or begins to.
func cancelDuring(buf abi.Addr, wait func(*abi.Handle, *abi.Status) error) error {
	var h abi.Handle
	if err := do("Irecv", buf, 1, intHandle, 0, 2, world0, &h); err != nil {
		return err
	}
	same := h
	var st abi.Status
	waits, ended := make(chan bool), make(chan error)
	go func() {
		waits <- true
		ended <- wait(&same, &st)
	}()
	<-waits
	runtime.Gosched()
	err := errors.Join(do("Cancel", &h), <-ended, wants("cancelled", &st.Cancelled, 1), wants("bytes", &st.Bytes, 0))
	return errors.Join(err, wants("handle", &same, abi.Handle(abi.RequestNull)))
}

// A ring is the neighbors of a rank.
type ring struct{ me, right, left int }

func ringOf() ring {
	n, me := comms.World.P2P.Size(), comms.World.P2P.Rank()
	return ring{me, (me + 1) % n, (me + n - 1) % n}
}

func allMessages() error {
	r := ringOf()
	for i, f := range []func() error{
		r.modes, r.persistent, r.anyAndSome, r.probes, r.buffered, r.replace, r.truncated, r.strided} {
		if err := do("Barrier", world0); err != nil {
			return err
		}
		if err := f(); err != nil {
			return fmt.Errorf("part %d: %w", i, err)
		}
	}
	return nil
}

func (r ring) modes() error {
	for i, send := range []string{"Isend", "Issend", "Irsend"} {
		in, out := make([]int32, 3), []int32{int32(r.me), 2, 3}
		hs := make([]abi.Handle, 2)
		sts := make([]abi.Status, 2)
		err := errors.Join(
			do("Irecv", addr(in), 3, intHandle, r.left, i, world0, &hs[0]),
			do("Barrier", world0), // a ready send wants its receive
			do(send, addr(out), 3, intHandle, r.right, i, world0, &hs[1]),
			do("Waitall", 2, hs, sts),
			wants(send, &in[0], int32(r.left)),
			wants("source", &sts[0].Source, int32(r.left)), wants("tag", &sts[0].Tag, int32(i)),
			wants("bytes", &sts[0].Bytes, 12),
			wants("request", &hs[0], abi.Handle(abi.RequestNull)),
			wants("request", &hs[1], abi.Handle(abi.RequestNull)),
		)
		if err != nil {
			return err
		}
	}
	return nil
}

func (r ring) persistent() error {
	in, out := make([]int32, 1), make([]int32, 1)
	hs := make([]abi.Handle, 2)
	if err := errors.Join(
		do("Recv_init", addr(in), 1, intHandle, r.left, 7, world0, &hs[0]),
		do("Send_init", addr(out), 1, intHandle, r.right, 7, world0, &hs[1])); err != nil {
		return err
	}
	was := hs[0]
	for i := range 5 {
		out[0] = int32(10*r.me + i)
		if err := errors.Join(do("Startall", 2, hs), do("Waitall", 2, hs, nil),
			wants("message", &in[0], int32(10*r.left+i)), wants("handle", &hs[0], was)); err != nil {
			return err
		}
	}
	var st abi.Status
	return errors.Join( // an inactive request is over, with the empty status
		do("Wait", &hs[0], &st), wants("source", &st.Source, abi.AnySource), wants("handle", &hs[0], was),
		do("Request_free", &hs[0]), do("Request_free", &hs[1]), wants("handle", &hs[0], abi.Handle(abi.RequestNull)))
}

func (r ring) anyAndSome() error {
	in, out := make([]int32, 4), []int32{int32(r.me)}
	hs := make([]abi.Handle, 4)
	for i := range hs {
		hs[i] = abi.RequestNull
		if i > 0 {
			if err := do("Irecv", addr(in[i:]), 1, intHandle, r.left, 20+i, world0, &hs[i]); err != nil {
				return err
			}
		}
	}
	index, flag := 0, 1
	var st abi.Status
	if err := errors.Join(do("Testany", 4, hs, &index, &flag, &st), wants("flag", &flag, 0),
		wants("index", &index, abi.Undefined), do("Barrier", world0)); err != nil {
		return err
	}
	for i := 3; i > 0; i-- {
		if err := errors.Join(do("Send", addr(out), 1, intHandle, r.right, 20+i, world0),
			do("Waitany", 4, hs, &index, &st), wants("index", &index, i), wants("tag", &st.Tag, int32(20+i)),
			wants("message", &in[i], int32(r.left)), do("Barrier", world0)); err != nil {
			return err
		}
	}
	if err := errors.Join(do("Waitany", 4, hs, &index, &st),
		wants("index of none", &index, abi.Undefined)); err != nil {
		return err
	}
	return errors.Join(r.some(in, out, hs), r.anyOften())
}

// anyOften waits for one of two messages, which comes at any moment: while the requests are tested,
// too, one after the other, before the wait.
func (r ring) anyOften() error {
	in, out, hs := make([]int32, 2), []int32{1}, make([]abi.Handle, 2)
	for k := range 3000 {
		for i := range hs {
			if err := do("Irecv", addr(in[i:]), 1, intHandle, r.left, 40+i, world0, &hs[i]); err != nil {
				return err
			}
		}
		for i := range hs { // the other message is sent when this one has come
			index := 0
			for range (k + r.me*31) % 64 {
				runtime.Gosched()
			}
			err := errors.Join(do("Send", addr(out), 1, intHandle, r.right, 40+i, world0),
				do("Waitany", 2, hs, &index, nil), wants("index", &index, i), do("Barrier", world0))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (r ring) some(in, out []int32, hs []abi.Handle) error {
	for i := range hs {
		if err := do("Irecv", addr(in[i:]), 1, intHandle, r.left, 30+i, world0, &hs[i]); err != nil {
			return err
		}
	}
	for i := range hs {
		if err := do("Send", addr(out), 1, intHandle, r.right, 30+i, world0); err != nil {
			return err
		}
	}
	indices, sts, seen := make([]int32, 4), make([]abi.Status, 4), 0
	for {
		count := 0
		if err := do("Waitsome", 4, hs, &count, indices, sts); err != nil {
			return err
		}
		if count == abi.Undefined {
			return wants("requests seen", &seen, 1+2+4+8)
		}
		for k := range count {
			seen += 1 << indices[k]
			if err := wants("tag", &sts[k].Tag, 30+indices[k]); err != nil {
				return err
			}
		}
	}
}

func (r ring) probes() error {
	out, in := []int32{1, 2, int32(r.me)}, make([]int32, 3)
	var h, m abi.Handle
	flag, count := 0, 0
	var st abi.Status
	if err := errors.Join(
		do("Iprobe", r.left, 99, world0, &flag, nil), wants("flag", &flag, 0), // nothing has that tag
		do("Isend", addr(out), 3, intHandle, r.right, 40, world0, &h),
		do("Probe", abi.AnySource, 40, world0, &st), wants("source", &st.Source, int32(r.left)),
		do("Get_count", &st, intHandle, &count), wants("count", &count, 3),
		do("Mprobe", r.left, abi.AnyTag, world0, &m, &st), wants("tag", &st.Tag, 40),
		do("Iprobe", r.left, 40, world0, &flag, nil), wants("flag of what was taken", &flag, 0),
		do("Mrecv", addr(in), 3, intHandle, &m, &st), wants("message", &in[2], int32(r.left)),
		wants("handle", &m, abi.Handle(abi.MessageNull)),
		do("Wait", &h, nil)); err != nil {
		return err
	}
	return errors.Join( // nothing comes from MPI_PROC_NULL, at once
		do("Mprobe", abi.ProcNull, 1, world0, &m, &st), wants("handle", &m, abi.Handle(abi.MessageNoProc)),
		wants("source", &st.Source, abi.ProcNull),
		do("Mrecv", addr(in), 3, intHandle, &m, &st), wants("bytes", &st.Bytes, 0),
		do("Recv", addr(in), 3, intHandle, abi.ProcNull, 1, world0, &st), wants("source", &st.Source, abi.ProcNull),
		wants("tag", &st.Tag, abi.AnyTag),
		do("Send", addr(out), 3, intHandle, abi.ProcNull, 1, world0))
}

func (r ring) buffered() error {
	room, out, in := make([]byte, 64), make([]int32, 16), make([]int32, 8)
	out[7] = int32(r.me)
	err := errors.Join(do("Buffer_attach", addr(room), len(room)),
		do("Bsend", addr(out), 8, intHandle, r.right, 50, world0))
	if err != nil {
		return err
	}
	out[7] = -1 // it was copied
	if c := errs.ClassOf(do("Bsend", addr(out), 16, intHandle, r.right, 50, world0)); c != errs.Buffer {
		return fmt.Errorf("a message longer than the buffer: class %d", c)
	}
	at, size := abi.Handle(0), 0
	return errors.Join(
		do("Recv", addr(in), 8, intHandle, r.left, 50, world0, nil), wants("message", &in[7], int32(r.left)),
		do("Buffer_detach", &at, &size), wants("size", &size, len(room)))
}

func (r ring) replace() error {
	b := []int32{int32(r.me), gap, 5, 6}
	var st abi.Status
	var t abi.Handle
	return errors.Join(
		do("Type_vector", 2, 1, 2, intHandle, &t), do("Type_commit", &t),
		do("Sendrecv_replace", addr(b), 1, t, r.right, 60, r.left, 60, world0, &st),
		wants("message", &b[0], int32(r.left)), wants("what is between", &b[1], gap), wants("bytes", &st.Bytes, 8),
		do("Sendrecv_replace", addr(b), 1, t, abi.ProcNull, 60, abi.ProcNull, 60, world0, &st),
		wants("source", &st.Source, abi.ProcNull),
		do("Type_free", &t))
}

// strided sends every second integer, and receives into every third: short, long, and in part.
func (r ring) strided() error {
	for i, n := range []int{10, 1000, 300_000} {
		out, in, wide := make([]int32, 2*n), make([]int32, 3*n), make([]int32, 3*n)
		for k := range n {
			out[2*k] = int32(1000*r.me + k)
		}
		var second, third, h abi.Handle
		var st abi.Status
		err := errors.Join(
			do("Type_vector", n, 1, 2, intHandle, &second), do("Type_commit", &second),
			do("Type_vector", n, 1, 3, intHandle, &third), do("Type_commit", &third),
			do("Sendrecv", addr(out), 1, second, r.right, 80+i, addr(in), 1, third, r.left, 80+i, world0, &st),
			wants("bytes", &st.Bytes, int64(4*n)),
			do("Isend", addr(out), 1, second, r.right, 90+i, world0, &h), do("Type_free", &second),
			do("Recv", addr(wide), 1, third, r.left, 90+i, world0, &st), do("Wait", &h, nil))
		for k := range 3 * n {
			want := int32(0)
			if k%3 == 0 {
				want = int32(1000*r.left + k/3)
			}
			if in[k] != want || wide[k] != want {
				return errors.Join(err, fmt.Errorf("integer %d of %d is %d and %d, want %d", k, 3*n, in[k],
					wide[k], want))
			}
		}
		part := make([]int32, 3*n)
		err = errors.Join(err, do("Isend", addr(out), n/2, intHandle, r.right, 100+i, world0, &h),
			do("Recv", addr(part), 1, third, r.left, 100+i, world0, &st), wants("bytes", &st.Bytes, int64(n/2*4)),
			do("Wait", &h, nil),
			wants("the first", &part[0], int32(1000*r.left)), wants("what has not come", &part[3*(n/2)], 0),
			do("Type_free", &third))
		if err != nil {
			return err
		}
	}
	return nil
}

func (r ring) truncated() error {
	out, in := make([]int32, 100), make([]int32, 100)
	var h abi.Handle
	err := errors.Join(do("Isend", addr(out), 100, intHandle, r.right, 70, world0, &h))
	if c := errs.ClassOf(do("Recv", addr(in), 50, intHandle, r.left, 70, world0, nil)); c != errs.Truncate {
		err = errors.Join(err, fmt.Errorf("a message too long: class %d", c))
	}
	return errors.Join(err, do("Wait", &h, nil))
}

// refusals are calls with wrong arguments, and their classes.
func refusals() map[string]struct {
	err  error
	want abi.Class
} {
	b := make([]int32, 4)
	var h abi.Handle
	none := abi.Handle(abi.CommNull)
	type refusal = struct {
		err  error
		want abi.Class
	}
	return map[string]refusal{
		"a negative count":      {do("Send", addr(b), -1, intHandle, 0, 0, world0), errs.Count},
		"no datatype":           {do("Send", addr(b), 1, abi.Handle(abi.DatatypeNull), 0, 0, world0), errs.Type},
		"a negative tag":        {do("Send", addr(b), 1, intHandle, 0, -5, world0), errs.Tag},
		"the tag of leaders":    {do("Intercomm_create", world0, 0, world0, 1, -5, &h), errs.Tag},
		"any tag for a send":    {do("Send", addr(b), 1, intHandle, 0, abi.AnyTag, world0), errs.Tag},
		"a rank too high":       {do("Send", addr(b), 1, intHandle, 1, 0, world0), errs.Rank},
		"any source for a send": {do("Send", addr(b), 1, intHandle, abi.AnySource, 0, world0), errs.Rank},
		"no communicator":       {do("Send", addr(b), 1, intHandle, 0, 0, none), errs.Comm},
		"a root too high":       {do("Bcast", addr(b), 1, intHandle, 1, world0), errs.Root},
		"no operator": {do("Allreduce", abi.InPlace, addr(b), 1, intHandle, abi.Handle(abi.OpNull),
			world0), errs.Op},
		"an undefined operator": {do("Allreduce", abi.InPlace, addr(b), 1, abi.Handle(0x214), abi.Handle(0x28),
			world0), errs.Op},
		"no group":               {do("Comm_create", world0, abi.Handle(abi.GroupNull), &h), errs.Group},
		"a request that is none": {do("Start", &h), errs.Request},
		"the world freed":        {do("Comm_free", pointerTo(world0)), errs.Comm},
		"a predefined type":      {do("Type_free", pointerTo(intHandle)), errs.Type},
		"no topology":            {do("Cartdim_get", world0, &h), errs.Topology},
		"a grid too large":       {do("Cart_create", world0, 1, array(2), array(0), 0, &h), errs.Dims},
		"a keyval that is none":  {do("Comm_set_attr", world0, 12345, abi.Addr(1)), errs.Keyval},
		"an info that is none":   {do("Info_set", abi.Handle(abi.InfoNull), text("a"), text("b")), errs.Info},
		"not committed":          {uncommitted(b), errs.Type},
	}
}

func pointerTo(h abi.Handle) *abi.Handle { return &h }

func uncommitted(b []int32) error {
	var t abi.Handle
	if err := do("Type_contiguous", 2, intHandle, &t); err != nil {
		return err
	}
	return do("Send", addr(b), 1, t, 0, 0, world0)
}

func allAlone() error {
	for what, r := range refusals() {
		if c := errs.ClassOf(r.err); c != r.want {
			return fmt.Errorf("%s: %v, class %d: want class %d", what, r.err, c, r.want)
		}
	}
	return errors.Join(attributesAlone(), codesAlone(), infoAlone())
}

func wantsText(what string, room []byte, want string) error {
	got := string(room[:len(want)])
	return wants(what, &got, want)
}

func wantsCalls(log *[]string, want ...string) error {
	if !slices.Equal(*log, want) {
		return fmt.Errorf("calls are %q: want %q", *log, want)
	}
	return nil
}

// Attributes are copied in the order in which they were set, and deleted in the other.
func attributesAlone() error {
	var log []string
	copiesOfTests[1] = func(object abi.Handle, keyval int, extra, value abi.Addr) (abi.Addr, bool, abi.Class) {
		log = append(log, fmt.Sprint("copy ", value))
		return value + 100, value != 2, 0
	}
	deletesOfTests[2] = func(object abi.Handle, keyval int, value, extra abi.Addr) abi.Class {
		log = append(log, fmt.Sprint("delete ", value))
		return 0
	}
	c, d := abi.Handle(0), abi.Handle(0)
	keys := make([]int, 3)
	err := do("Comm_dup", world0, &c)
	for i := range keys {
		err = errors.Join(err, do("Comm_create_keyval", abi.Addr(1), abi.Addr(2), &keys[i], abi.Addr(0)),
			do("Comm_set_attr", c, keys[i], abi.Addr(i+1)))
	}
	value, flag, again := 0, 0, keys[0]
	return errors.Join(err,
		do("Comm_dup", c, &d),
		do("Comm_get_attr", d, keys[2], &value, &flag), wants("flag", &flag, 1), wants("value", &value, 103),
		do("Comm_get_attr", d, keys[1], &value, &flag), wants("flag of what was not copied", &flag, 0),
		do("Comm_set_attr", c, keys[0], abi.Addr(9)), // deletes 1
		do("Comm_free_keyval", &keys[0]), wants("keyval", &keys[0], 0),
		do("Comm_free_keyval", &again), // of a copy of the number
		do("Comm_free", &c), do("Comm_free", &d),
		wantsCalls(&log, "copy 1", "copy 2", "copy 3", "delete 1", "delete 3", "delete 2", "delete 9", "delete 103",
			"delete 101"))
}

func codesAlone() error {
	class, code, of, n := 0, 0, 0, 0
	room := make([]byte, 256)
	err := errors.Join(
		do("Add_error_class", &class), do("Add_error_code", class, &code), do("Error_class", code, &of),
		wants("class", &of, class),
		do("Add_error_string", code, text("so it is")), do("Error_string", code, abi.Text(addr(room)), &n),
		wantsText("string", room, "so it is"),
		do("Error_class", int(errs.Truncate), &of), wants("class", &of, int(errs.Truncate)))
	if c := errs.ClassOf(do("Error_class", 77, &of)); c != errs.Arg {
		err = errors.Join(err, fmt.Errorf("a code that is none: class %d", c))
	}
	return err
}

func infoAlone() error {
	var i abi.Handle
	n, flag := 0, 0
	room := make([]byte, 64)
	return errors.Join(
		do("Info_create", &i), do("Info_set", i, text("b"), text("2")), do("Info_set", i, text(" a "), text("1")),
		do("Info_set", i, text("b"), text(" three ")),
		do("Info_get_nkeys", i, &n), wants("keys", &n, 2),
		do("Info_get_nthkey", i, 0, abi.Text(addr(room))), wantsText("key 0", room, "b\x00"),
		do("Info_get", i, text("b"), 3, abi.Text(addr(room)), &flag), wantsText("value", room, " th\x00"),
		wants("flag", &flag, 1),
		do("Info_get_valuelen", i, text("b"), &n, &flag), wants("length", &n, 7),
		do("Info_get", i, text("c"), 3, abi.Text(addr(room)), &flag), wants("flag of none", &flag, 0),
		do("Info_free", &i), wants("handle", &i, abi.Handle(abi.InfoNull)))
}
