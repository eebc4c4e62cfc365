package tcp

import (
	"bytes"
	"net/netip"
	"reflect"
	"testing"

	"gompi/internal/sockets"
)

func prefixes(list ...string) []netip.Prefix {
	var p []netip.Prefix
	for _, s := range list {
		p = append(p, netip.MustParsePrefix(s))
	}
	return p
}

func TestCardRoundTrip(t *testing.T) {
	for _, c := range []*card{
		{port: 1, local: true},
		{port: 65535, nonce: [nonceSize]byte{1, 2}, subnet: prefixes("10.1.2.3/24", "fd00::5/64", "192.168.1.1/32")},
	} {
		got := &card{}
		err := got.decode(c.encode())
		if err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%+v reads as %+v, %v", c, got, err)
		}
	}
}

func TestDecodeCardRefuses(t *testing.T) {
	good := (&card{port: 80, subnet: prefixes("10.1.2.3/24")}).encode()
	change := func(i int, b byte) []byte {
		c := bytes.Clone(good)
		c[i] = b
		return c
	}
	for name, b := range map[string][]byte{
		"nothing":            nil,
		"a short one":        good[:cardFixed-1],
		"a cut address":      good[:len(good)-1],
		"a byte more":        append(bytes.Clone(good), 0),
		"version 9":          change(0, 9),
		"flags 2":            change(35, 2),
		"17 addresses":       change(36, sockets.MaxAddresses+1),
		"2 addresses of one": change(36, 2),
		"a 5 byte address":   change(37, 5),
		"a prefix of 33":     change(38, 33),
		"port 0":             (&card{}).encode(),
		"IPv4 in IPv6": (&card{port: 1,
			subnet: []netip.Prefix{netip.PrefixFrom(netip.MustParseAddr("::ffff:1.2.3.4"), 96)}}).encode(),
	} {
		c := &card{}
		if err := c.decode(b); err == nil {
			t.Errorf("%s: decoded as %+v", name, c)
		}
	}
}

func FuzzCard(f *testing.F) {
	f.Add((&card{port: 80, subnet: prefixes("10.1.2.3/24", "fd00::5/64")}).encode())
	f.Add((&card{port: 80, local: true}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		c := &card{}
		if c.decode(b) != nil {
			return
		}
		if again := c.encode(); !bytes.Equal(again, b) {
			t.Errorf("% x decodes to %+v, which encodes to % x", b, c, again)
		}
	})
}

func TestCandidates(t *testing.T) {
	v4 := netip.MustParseAddr("127.0.0.1")
	c := &card{port: 9, subnet: prefixes("172.17.0.1/16", "8.8.8.8/24", "10.0.0.7/24", "10.2.0.7/16")}
	own := prefixes("172.17.0.1/16", "10.2.0.1/16", "10.0.0.1/24")
	for _, tc := range []struct {
		name     string
		c        *card
		loopback netip.Addr
		want     []string
	}{
		{"shared subnets first, longest first, our own address last", c, netip.Addr{},
			[]string{"10.0.0.7:9", "10.2.0.7:9", "8.8.8.8:9", "172.17.0.1:9"}},
		{"on this host: loopback, then all", c, v4,
			[]string{"127.0.0.1:9", "10.0.0.7:9", "10.2.0.7:9", "8.8.8.8:9", "172.17.0.1:9"}},
		{"this host under another name", &card{port: 9, subnet: own[:1]}, netip.Addr{}, []string{"172.17.0.1:9"}},
		{"loopback only", &card{port: 9, local: true}, v4, []string{"127.0.0.1:9"}},
		{"loopback only, of IPv6", &card{port: 9, local: true}, netip.IPv6Loopback(), []string{"[::1]:9"}},
		{"loopback only, elsewhere", &card{port: 9, local: true}, netip.Addr{}, nil},
	} {
		var got []string
		for _, a := range tc.c.candidates(own, tc.loopback) {
			got = append(got, a.String())
		}
		if !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}
