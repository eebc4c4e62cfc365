package tcp

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/sockets"
	"gompi/internal/world"
	"gompi/transport"
)

// Rank 1 is to be found at 127.0.0.1, the last of its addresses; at 127.0.0.2
// there is somebody else.

// other listens at 127.0.0.2, on the port of r, and does the given thing with
// each connection.
func other(t *testing.T, r *rank, do func(c net.Conn)) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.2", strconv.Itoa(int(r.card.port))))
	if err != nil {
		t.Skipf("cannot listen on 127.0.0.2: %v", err)
	}
	t.Cleanup(func() { l.Close() })
	go func() { // ends when l is closed
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			do(c)
		}
	}()
}

// at makes r's card one that names these addresses.
func at(r *rank, addrs ...string) []byte {
	c := card{nonce: r.card.nonce, port: r.card.port}
	for _, a := range addrs {
		c.subnet = append(c.subnet, netip.MustParsePrefix(a+"/32"))
	}
	return c.encode()
}

// far makes rank 0 look for rank 1 at the given addresses.
func far(t *testing.T, addrs ...string) []*rank {
	ranks := startAll(t, 2, nil)
	ranks[0].cfg.SameHost = func(world.Rank) bool { return false }
	ranks[0].own = prefixes("192.0.2.1/24")
	if err := ranks[0].SetCards([][]byte{ranks[0].Card(), at(ranks[1], addrs...)}); err != nil {
		t.Fatal(err)
	}
	return ranks
}

func TestWrongAddressIsSkipped(t *testing.T) {
	for name, do := range map[string]func(c net.Conn){
		"closes": func(c net.Conn) { c.Close() },
		"greets": func(c net.Conn) { c.Write([]byte(strings.Repeat("SSH-2.0-OpenSSH_9 ", 10))) },
		"echoes": func(c net.Conn) { io.CopyN(c, c, helloSize) },
		"another's rank": func(c net.Conn) {
			io.ReadFull(c, make([]byte, helloSize))
			c.Write(stepRefusal.reply(wrongListener, nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			ranks := far(t, "127.0.0.2", "127.0.0.1")
			other(t, ranks[1], do)
			ranks[0].sendText(1, "found")
			until(t, ranks, "the frame", func() bool { return len(ranks[1].got) == 1 })
		})
	}
	t.Run("nobody", func(t *testing.T) {
		ranks := far(t, "127.0.0.2", "127.0.0.1")
		ranks[0].sendText(1, "found")
		until(t, ranks, "the frame", func() bool { return len(ranks[1].got) == 1 })
	})
}

// Anybody may send a refusal that has no proof: rank 1 is called again, and reached.
func TestARefusalWithoutProofIsAHint(t *testing.T) {
	for why := wrongListener; why < numReasons; why++ {
		for _, challenged := range []bool{false, true} {
			ranks := far(t, "127.0.0.2")
			for _, r := range ranks {
				r.cfg.FrameMAC = true // or the relay would be refused in earnest
			}
			callee := netip.AddrPortFrom(ranks[1].loopback, ranks[1].card.port).String()
			calls := 0
			other(t, ranks[1], func(c net.Conn) {
				if calls++; calls > 1 {
					go new(relay).serve(c, callee)
					return
				}
				io.ReadFull(c, make([]byte, helloSize))
				if challenged {
					c.Write(stepChallenge.reply(0, make([]byte, challengeSize)))
					io.ReadFull(c, make([]byte, replySize))
				}
				c.Write(stepRefusal.reply(why, make([]byte, macSize)))
			})
			ranks[0].sendText(1, "found")
			until(t, ranks, "an outcome", func() bool { return ranks[0].lost[1] != nil || len(ranks[1].got) == 1 })
			if err := ranks[0].lost[1]; err != nil {
				t.Errorf("%q, after a challenge: %v: lost with %v", why, challenged, err)
			}
		}
	}
}

func TestSilentAddressIsLeftAfterAWhile(t *testing.T) {
	ranks := far(t, "127.0.0.2", "127.0.0.1")
	connected := make(chan struct{}, 100)
	other(t, ranks[1], func(c net.Conn) { connected <- struct{}{} })
	ranks[0].sendText(1, "found")
	until(t, ranks[:1], "the hello", func() bool {
		return len(connected) == 1 && ranks[0].peers[1].call.sock.phase == helloSent
	})
	if d := ranks[0].Deadline(); d <= 0 || d > silenceTime {
		t.Errorf("Deadline() = %d ns while an address is silent, want up to %d", d, silenceTime)
	}
	ranks[0].pass(time.Duration(silenceTime))
	until(t, ranks, "the frame", func() bool { return len(ranks[1].got) == 1 })
}

// Rank 1 computes: its system accepts connections, it answers nothing. That is
// no failure, however long it takes.
func TestRankThatComputesIsWaitedFor(t *testing.T) {
	for _, addrs := range [][]string{{"127.0.0.1"}, {"127.0.0.2", "127.0.0.1"}} {
		ranks := far(t, addrs...)
		ranks[0].sendText(1, "at last")
		for range 1000 {
			ranks[0].pass(10 * time.Second)
		}
		if len(ranks[0].lost) > 0 {
			t.Fatalf("%v: lost %v", addrs, ranks[0].lost)
		}
		until(t, ranks, "the frame", func() bool {
			ranks[0].clock.now += int64(100 * time.Millisecond)
			return len(ranks[1].got) == 1
		})
	}
}

func TestUnreachableNamesEveryAddressAndWhy(t *testing.T) {
	ranks := far(t, "127.0.0.2", "127.0.0.3", "127.0.0.4")
	other(t, ranks[1], func(c net.Conn) { c.Write([]byte(strings.Repeat("220 mail ", 10))) })
	ranks[0].sendText(1, "lost")
	until(t, ranks, "the loss", func() bool { return ranks[0].lost[1] != nil })
	err := ranks[0].lost[1]
	port := strconv.Itoa(int(ranks[1].card.port))
	for _, want := range []string{"127.0.0.2:" + port + ": another program answers there",
		"; 127.0.0.3:" + port + ", 127.0.0.4:" + port + ": connection refused"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not contain %q", err, want)
		}
	}
	if !errors.Is(err, transport.ErrUnreachable) {
		t.Errorf("%v is not %v", err, transport.ErrUnreachable)
	}
}

func TestRankWithoutAnAddressIsUnreachable(t *testing.T) {
	for name, c := range map[string][]byte{
		"no card":            nil,
		"loopback elsewhere": (&card{port: 9, local: true}).encode(),
	} {
		ranks := far(t, "127.0.0.1")
		if err := ranks[0].SetCards([][]byte{ranks[0].Card(), c}); err != nil {
			t.Fatal(err)
		}
		if ranks[0].Reaches(1) != (c != nil) {
			t.Errorf("%s: Reaches(1) = %v", name, ranks[0].Reaches(1))
		}
		ranks[0].sendText(1, "x")
		until(t, ranks, "the loss", func() bool { return ranks[0].lost[1] != nil })
		if err := ranks[0].lost[1]; !errors.Is(err, transport.ErrUnreachable) {
			t.Errorf("%s: lost with %v, want %v", name, err, transport.ErrUnreachable)
		}
	}
}

func TestSetCardsRefuses(t *testing.T) {
	ranks := startAll(t, 2, nil)
	for _, cards := range [][][]byte{nil, {ranks[0].Card()}, {ranks[0].Card(), []byte("nonsense")}} {
		if ranks[0].SetCards(cards) == nil {
			t.Errorf("SetCards(%q) succeeded", cards)
		}
	}
}

// Ranks on several hosts listen on all addresses, but let in only who comes by
// one that was chosen.
func TestOnlyChosenAddressesLetIn(t *testing.T) {
	any, err := sockets.LocalAddresses(sockets.Filter{})
	if err != nil || len(any) == 0 {
		t.Skipf("this host has no address but loopback: %v", err)
	}
	spread := func(cfg *Config) {
		cfg.SameHost = nil
		cfg.Interfaces = any[0].Addr().String()
	}
	for _, chosen := range []bool{true, false} {
		ranks := startAll(t, 2, spread)
		if c := ranks[1].card; len(c.subnet) != 1 || c.local {
			t.Errorf("card %+v, want just %v", c, any[0])
		}
		ranks[0].card.network[0]++ // or loopback would be its way
		ranks[0].own = nil         // or its own address would be taken for a bridge's
		if !chosen {
			ranks[1].own = prefixes("192.0.2.200/24")
		}
		ranks[0].sendText(1, "x")
		until(t, ranks, "an outcome", func() bool {
			ranks[0].clock.now += pauses
			return len(ranks[1].got) == 1 || ranks[0].lost[1] != nil
		})
		if got := len(ranks[1].got) == 1; got != chosen {
			t.Errorf("address chosen: %v, let in: %v", chosen, got)
		}
	}
}

func TestIPv6(t *testing.T) {
	ranks := startAll(t, 2, nil)
	// As if the ranks were on several hosts, whatever this one has.
	for _, r := range ranks {
		_ = r.set.Del(r.listener)
		unix.Close(r.listener)
		r.card.local = false
		if err := r.listen(); err != nil {
			t.Fatal(err)
		}
	}
	ranks[0].cfg.SameHost = func(world.Rank) bool { return false }
	ranks[0].own = prefixes("192.0.2.1/24")
	card := card{nonce: ranks[1].card.nonce, port: ranks[1].card.port, subnet: prefixes("::1/128")}
	if err := ranks[0].SetCards([][]byte{ranks[0].Card(), card.encode()}); err != nil {
		t.Fatal(err)
	}
	ranks[0].sendText(1, "six")
	until(t, ranks, "an outcome", func() bool { return len(ranks[1].got) == 1 || ranks[0].lost[1] != nil })
	if err := ranks[0].lost[1]; err != nil {
		t.Skipf("no IPv6 here: %v", err)
	}
}

// Who has typed no interfaces is not told of them.
func TestAHostWithLinkLocalAddressesAloneLearnsWhatItLacks(t *testing.T) {
	if got := new(Transport).noAddress().Error(); strings.Contains(got, "interfaces") ||
		!strings.Contains(got, "link-local") {
		t.Errorf("%q: want what addresses it has, and no list of interfaces", got)
	}
}

// Ranks on two names of one host reach each other where it has no address but loopback, and only
// they do.
func TestLoopbackServesTwoNamesOfOneHost(t *testing.T) {
	for _, filter := range []string{"lo", "nosuch"} {
		ranks := startAll(t, 2, func(cfg *Config) { cfg.SameHost, cfg.Interfaces = nil, filter })
		if len(ranks[0].own) != 0 {
			t.Fatalf("%s: addresses %v, want none", filter, ranks[0].own)
		}
		ranks[0].sendText(1, "x")
		until(t, ranks, "the frame", func() bool { return len(ranks[1].got) == 1 })
		elsewhere := ranks[1].card
		elsewhere.network[0]++
		err := ranks[0].SetCards([][]byte{ranks[0].Card(), elsewhere.encode()})
		if err == nil || !strings.Contains(err.Error(), "rank 1: it is on another host") ||
			!strings.Contains(err.Error(), strconv.Quote(filter)) {
			t.Errorf("%s: %v; want an error that names rank 1 and the interfaces", filter, err)
		}
	}
}
