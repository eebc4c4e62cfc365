package proc

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
)

// A record may end early, and a stack may hold anything: whatever is found in it, the search ends.
func TestRecordsOfCrashesMayBeAnything(t *testing.T) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	space, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		t.Fatal(err)
	}
	code := uint64(reflect.ValueOf(TestRecordsOfCrashesMayBeAnything).Pointer())
	whole := make([]byte, recordHead+recordStack, 1<<20)
	random := rand.New(rand.NewPCG(1, 2))
	for i := 8; i < len(whole); i += 8 {
		binary.LittleEndian.PutUint64(whole[i:], code+random.Uint64N(1<<16)) // of the stack's words some are code
	}
	binary.LittleEndian.PutUint64(whole[8:], 1<<20)
	binary.LittleEndian.PutUint64(whole[2*8+15*8:], 1<<20) // the stack pointer
	whole = append(append(append(whole, space...), "/program\n"...), maps...)
	for name, record := range map[string][]byte{
		"nothing": nil, "a head": whole[:recordHead], "no mappings": whole[:recordHead+recordStack],
		"half a mapping": whole[:recordHead+recordStack+len(space)+29], "all": whole,
		"another namespace": []byte(strings.Replace(string(whole), space, "mnt:[1]", 1)),
	} {
		if got := crashed(record); got != "" && name != "all" {
			t.Errorf("%s: %q, want no frames", name, got)
		}
	}
}
