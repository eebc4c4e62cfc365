package path

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"gompi/internal/calls"
)

// Rules are the conditions under which a communicator chooses, and the user's tuning. All its
// ranks use equal ones: rank 0 of the world makes the Rules, the others Decode them. Then Rules
// are immutable and may be shared. A copy has the conditions of a communicator on fewer hosts.
// The zero Rules are not tuned.
type Rules struct {
	// Deterministic keeps the order of operands, so that results do not depend on the choice.
	Deterministic bool
	// Oversubscribed means that ranks outnumber processors on some host.
	Oversubscribed bool
	// Hosts is the number of hosts; 0 means 1. Ranks of a host are taken to be neighbours.
	Hosts int

	// Ignored has the names that Tune has read and that have no effect any more.
	Ignored []string

	tuned [len(catalogue)][]rule   // come before the built-in rules
	set   [numThresholds]threshold // by the user
}

// A threshold is the user's value of a threshold, if set.
type threshold struct {
	bytes int64
	set   bool
}

// Tunes reports whether Tune has added rules for messages.
func (r *Rules) Tunes() bool {
	return slices.ContainsFunc(r.tuned[:], func(rules []rule) bool { return len(rules) > 0 })
}

// Untuned returns r without rules for messages.
func (r *Rules) Untuned() *Rules {
	built := *r
	built.tuned = [len(catalogue)][]rule{}
	return &built
}

// threshold returns the bytes of t.
func (r *Rules) threshold(t Threshold) int {
	if r.set[t].set {
		return int(r.set[t].bytes)
	}
	return int(thresholds[t].bytes)
}

// Reads returns the lengths of messages inside a host that their receiver reads from ordinary
// memory: from from to below-1 bytes.
func (r *Rules) Reads() (from, below int) { return r.threshold(shmReadFrom), r.threshold(shmReadBelow) }

// TriesFrom returns the bytes from which messages and collectives time now and then whether the
// kernel copies faster.
func (r *Rules) TriesFrom() int {
	return r.threshold(shmTrialFrom)
}

// Ring returns the bytes of a chunk and of a ring for messages inside a host.
func (r *Rules) Ring() (chunk, bytes int) {
	return r.threshold(shmRingChunk), r.threshold(shmRingBytes)
}

// keepsOrder reports whether operands have to be combined in the order of coll/order.go. custom
// means that the operator is a function of the user.
func (r *Rules) keepsOrder(k calls.Kind, custom bool) bool {
	return k.Reduces() && (custom || r.Deterministic)
}

// Tuned returns the algorithm that a rule of the user's names for a call of a collective. The call
// then goes by messages, also where another way is faster. bytes are as in rules.
func (r *Rules) Tuned(k calls.Kind, ranks int, bytes int64, ordered bool) (a Algorithm, ok bool) {
	if i := position(k); i >= 0 {
		return r.find(r.tuned[i], i, ranks, bytes, ordered)
	}
	return None, false
}

// Pick returns the algorithm over messages for a call of a collective.
func (r *Rules) Pick(k calls.Kind, ranks int, bytes int64, ordered bool) Algorithm {
	i := position(k)
	if i < 0 {
		if k == calls.Alltoallv || k == calls.Alltoallw {
			return Pairwise
		}
		return Linear // of gatherv and scatterv
	}
	if a, ok := r.find(r.tuned[i], i, ranks, bytes, ordered); ok {
		return a
	}
	if a, ok := r.find(catalogue[i].rules, i, ranks, bytes, ordered); ok {
		return a
	}
	return catalogue[i].methods[0].Algorithm
}

// find returns the algorithm of the last rule that fits a call and whose algorithm serves it.
func (r *Rules) find(rules []rule, position, ranks int, bytes int64, ordered bool) (Algorithm, bool) {
	methods := catalogue[position].methods
	for i := len(rules) - 1; i >= 0; i-- {
		alg := rules[i].alg
		if rules[i].fits(r, ranks, bytes) &&
			slices.ContainsFunc(methods, func(m Method) bool { return m.Algorithm == alg && m.serves(ordered) }) {
			return alg, true
		}
	}
	return None, false
}

func (x *rule) fits(r *Rules, ranks int, bytes int64) bool {
	spread := r.Hosts > 1 && ranks > r.Hosts
	oversubscribed := r.Oversubscribed && ranks > r.Hosts
	return bytes >= x.from && (x.to == 0 || bytes < x.to) && ranks >= x.ranks && (spread || !x.spread) &&
		(oversubscribed || !x.oversubscribed)
}

// Encode returns r for Decode on other ranks, but for Oversubscribed: a byte, 1 if Deterministic,
// the number of hosts, and the tuning as text.
func (r *Rules) Encode() []byte {
	deterministic := byte(0)
	if r.Deterministic {
		deterministic = 1
	}
	return append(binary.AppendUvarint([]byte{deterministic}, uint64(r.Hosts)), r.String()...)
}

// Decode returns the Rules that Encode encoded.
func Decode(b []byte) (*Rules, error) {
	if len(b) == 0 || b[0] > 1 {
		return nil, fmt.Errorf("%q are not encoded rules", b)
	}
	hosts, n := binary.Uvarint(b[1:])
	if n <= 0 || hosts > math.MaxInt32 {
		return nil, fmt.Errorf("%q are not encoded rules", b)
	}
	r := &Rules{Deterministic: b[0] == 1, Hosts: int(hosts)}
	return r, r.Tune(string(b[1+n:]))
}
