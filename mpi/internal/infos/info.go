// Package infos has MPI's info objects: keys and values.
package infos

import (
	"slices"
	"strings"
	"sync"

	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/errs"
)

var Registry = abi.NewRegistry(abi.InfoNull, func(i *Info) abi.Handle { return i.Handle })

// An Info is pairs of keys and values, in the order in which they were set. nil is MPI_INFO_NULL.
type Info struct {
	Handle abi.Handle
	mu     sync.Mutex
	pairs  []infoPair
}

type infoPair struct{ key, value string }

// New returns an info of keys, each followed by its value.
func New(pairs ...string) *Info {
	i := &Info{}
	i.fill(pairs)
	i.Handle = Registry.Add(i)
	return i
}

func (i *Info) fill(pairs []string) {
	for ; len(pairs) > 0; pairs = pairs[2:] {
		i.set(pairs[0], pairs[1])
	}
}

// SetEnvironment makes MPI_INFO_ENV.
func SetEnvironment(pairs ...string) {
	i := &Info{Handle: abi.InfoEnv}
	i.fill(pairs)
	Registry.Set(i.Handle, i)
}

// find returns the index of a key, -1 if absent.
func (i *Info) find(key string) int {
	return slices.IndexFunc(i.pairs, func(p infoPair) bool { return p.key == key })
}

// Pairs returns all keys, each followed by its value.
func (i *Info) Pairs() (all []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, p := range i.pairs {
		all = append(all, p.key, p.value)
	}
	return all
}

// Value returns the value of a key without surrounding blanks, as hints are read, and whether the
// key is present. i may be nil.
func (i *Info) Value(key string) (string, bool) {
	if i == nil {
		return "", false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	at := i.find(key)
	if at < 0 {
		return "", false
	}
	return strings.TrimSpace(i.pairs[at].value), true
}

// Check returns an error if i is not valid.
func (i *Info) Check() error {
	if i == nil {
		return errs.New(errs.Info, "the info is not valid")
	}
	return nil
}

// keyOf returns a key of the program's. The functions in Fortran have removed surrounding blanks,
// which are part of the key in C.
func keyOf(i *Info, key abi.Text) (string, error) {
	k := key.String()
	if k == "" || len(k) >= abi.C.MaxInfoKey {
		return "", errs.New(errs.InfoKey, "the key %q has %d bytes: want 1 to %d", k, len(k), abi.C.MaxInfoKey-1)
	}
	return k, nil
}

func InfoCreate() (*Info, error) { return New(), nil }

func InfoDup(i *Info) (*Info, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := &Info{pairs: slices.Clone(i.pairs)}
	n.Handle = Registry.Add(n)
	return n, nil
}

func InfoFree(h *abi.Handle) error {
	if Registry.Find(*h) == nil || *h == abi.InfoEnv {
		return errs.New(errs.Info, "the info is not valid, or MPI_INFO_ENV")
	}
	Registry.Remove(*h)
	*h = Registry.Null
	return nil
}

func InfoSet(i *Info, key, value abi.Text) error {
	k, err := keyOf(i, key)
	if err != nil {
		return err
	}
	v := value.String()
	if v == "" || len(v) >= abi.C.MaxInfoValue {
		return errs.New(errs.InfoValue, "the value of %q has %d bytes: want 1 to %d", k, len(v), abi.C.MaxInfoValue-1)
	}
	i.set(k, v)
	return nil
}

func (i *Info) set(key, value string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if at := i.find(key); at >= 0 {
		i.pairs[at].value = value
	} else {
		i.pairs = append(i.pairs, infoPair{key, value})
	}
}

func InfoDelete(i *Info, key abi.Text) error {
	k, err := keyOf(i, key)
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	at := i.find(k)
	if at < 0 {
		return errs.New(errs.InfoNoKey, "there is no key %q", k)
	}
	i.pairs = slices.Delete(i.pairs, at, at+1)
	return nil
}

// get returns the value of a key.
func (i *Info) get(key abi.Text) (string, bool, error) {
	k, err := keyOf(i, key)
	if err != nil {
		return "", false, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if at := i.find(k); at >= 0 {
		return i.pairs[at].value, true, nil
	}
	return "", false, nil
}

// InfoGet stores at most n bytes, and a zero behind them.
func InfoGet(i *Info, key abi.Text, n int, value abi.Text) (bool, error) {
	v, ok, err := i.get(key)
	if ok {
		value.Set(v, n+1)
	}
	return ok, err
}

// InfoGetString counts the terminating zero in n, in both directions.
func InfoGetString(i *Info, key abi.Text, n *int, value abi.Text) (bool, error) {
	v, ok, err := i.get(key)
	if ok {
		value.Set(v, *n)
		*n = len(v) + 1
	}
	return ok, err
}

func InfoGetValuelen(i *Info, key abi.Text) (int, bool, error) {
	v, ok, err := i.get(key)
	return len(v), ok, err
}

func InfoGetNkeys(i *Info) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.pairs), nil
}

func InfoGetNthkey(i *Info, n int, key abi.Text) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if n < 0 || n >= len(i.pairs) {
		return errs.New(errs.Arg, "key %d of %d", n, len(i.pairs))
	}
	key.Set(i.pairs[n].key, abi.C.MaxInfoKey)
	return nil
}
