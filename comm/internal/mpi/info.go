package mpi

import (
	"slices"
	"strings"
	"sync"

	"gompi/comm/internal/mpi/table"
)

// An Info is pairs of keys and values, in the order in which they were set. nil is MPI_INFO_NULL.
type Info struct {
	handle Handle
	mu     sync.Mutex
	pairs  []infoPair
}

type infoPair struct{ key, value string }

func newInfo(i *Info) *Info {
	if i == nil {
		i = &Info{}
	}
	i.handle = infos.add(i)
	return i
}

func (i *Info) copy() *Info {
	if i == nil {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return &Info{pairs: slices.Clone(i.pairs)}
}

// find returns the index of a key, -1 if it is not there.
func (i *Info) find(key string) int {
	return slices.IndexFunc(i.pairs, func(p infoPair) bool { return p.key == key })
}

func checkInfo(i *Info) error {
	if i == nil {
		return wrong(errInfo, "the info is not valid")
	}
	return nil
}

// keyOf returns a key of the program's, without spaces around it.
func keyOf(i *Info, key Text) (string, error) {
	if err := checkInfo(i); err != nil {
		return "", err
	}
	k := strings.TrimSpace(key.String())
	if k == "" || len(k) >= face.MaxInfoKey {
		return "", wrong(errInfoKey, "the key %q has %d bytes: want 1 to %d", k, len(k), face.MaxInfoKey-1)
	}
	return k, nil
}

func InfoCreate() (*Info, error) { return newInfo(nil), nil }

func InfoDup(i *Info) (*Info, error) {
	if err := checkInfo(i); err != nil {
		return nil, err
	}
	return newInfo(i.copy()), nil
}

func InfoFree(h *Handle) error {
	if infos.find(*h) == nil || *h == table.InfoEnv {
		return wrong(errInfo, "the info is not valid, or MPI_INFO_ENV")
	}
	infos.remove(*h)
	*h = infos.null
	return nil
}

func InfoSet(i *Info, key, value Text) error {
	k, err := keyOf(i, key)
	if err != nil {
		return err
	}
	v := strings.TrimSpace(value.String())
	if v == "" || len(v) >= face.MaxInfoValue {
		return wrong(errInfoValue, "the value of %q has %d bytes: want 1 to %d", k, len(v), face.MaxInfoValue-1)
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

func InfoDelete(i *Info, key Text) error {
	k, err := keyOf(i, key)
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	at := i.find(k)
	if at < 0 {
		return wrong(errInfoNoKey, "there is no key %q", k)
	}
	i.pairs = slices.Delete(i.pairs, at, at+1)
	return nil
}

// get returns the value of a key.
func (i *Info) get(key Text) (string, bool, error) {
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
func InfoGet(i *Info, key Text, n int, value Text) (bool, error) {
	v, ok, err := i.get(key)
	if ok {
		value.set(v, n+1)
	}
	return ok, err
}

// InfoGetString has room for the zero, too, in n, and returns what is needed.
func InfoGetString(i *Info, key Text, n *int, value Text) (bool, error) {
	v, ok, err := i.get(key)
	if ok {
		value.set(v, *n)
		*n = len(v) + 1
	}
	return ok, err
}

func InfoGetValuelen(i *Info, key Text) (int, bool, error) {
	v, ok, err := i.get(key)
	return len(v), ok, err
}

func InfoGetNkeys(i *Info) (int, error) {
	if err := checkInfo(i); err != nil {
		return 0, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.pairs), nil
}

func InfoGetNthkey(i *Info, n int, key Text) error {
	if err := checkInfo(i); err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if n < 0 || n >= len(i.pairs) {
		return wrong(errArg, "key %d of %d", n, len(i.pairs))
	}
	key.set(i.pairs[n].key, face.MaxInfoKey)
	return nil
}
