package hostfile

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// bare, slots and all are the hosts most tests want.
func bare(name string) Host             { return Host{Name: name, Bare: true} }
func slots(name string, n int) Host     { return Host{Name: name, Slots: n} }
func all(name string) Host              { return Host{Name: name} }
func capped(name string, n, m int) Host { return Host{Name: name, Slots: n, MaxSlots: m} }

func TestParseReadsEveryDialect(t *testing.T) {
	tests := []struct {
		name, file string
		want       []Host
	}{
		{"one bare host", "node01", []Host{bare("node01")}},
		{"no last newline", "a slots=1\nb slots=2", []Host{slots("a", 1), slots("b", 2)}},
		{"open mpi", "node01 slots=4 max_slots=8\nalice@node02 slots = 2 port=2222\nnode03   # all its cores\n",
			[]Host{capped("node01", 4, 8), {Name: "node02", User: "alice", Slots: 2, Port: 2222}, bare("node03")}},
		{"every spelling of slots", "a slots=2\nb slot=2\nc cpu=2\nd cpus=2\ne count=2\nf np=2\ng ppn=2\nh SLOTS=2",
			[]Host{slots("a", 2), slots("b", 2), slots("c", 2), slots("d", 2), slots("e", 2), slots("f", 2),
				slots("g", 2), slots("h", 2)}},
		{"every spelling of max_slots", "a max_slots=2\nb max-slots=2\nc slots_max=2\nd slots-max=2\ne max_cpu=2\nf cpu-max=2\ng count-max=2",
			[]Host{{Name: "a", Bare: true, MaxSlots: 2}, {Name: "b", Bare: true, MaxSlots: 2},
				{Name: "c", Bare: true, MaxSlots: 2},
				{Name: "d", Bare: true, MaxSlots: 2}, {Name: "e", Bare: true, MaxSlots: 2},
				{Name: "f", Bare: true, MaxSlots: 2},
				{Name: "g", Bare: true, MaxSlots: 2}}},
		{"every spelling of user", "a user=u\nb username=u\nc user-name=u\nd user_name = u\nu@e user=u",
			[]Host{{Name: "a", User: "u", Bare: true}, {Name: "b", User: "u", Bare: true},
				{Name: "c", User: "u", Bare: true},
				{Name: "d", User: "u", Bare: true}, {Name: "e", User: "u", Bare: true}}},
		{"hydra", "donner:2\nfoo:4 user=bob  # comment\nshakti:3 binding=user:0,2,4\n",
			[]Host{slots("donner", 2), {Name: "foo", User: "bob", Slots: 4}, slots("shakti", 3)}},
		{"kungfu", "10.0.0.1 slots=4 public_addr=a.example\n10.0.0.2:4:b.example",
			[]Host{slots("10.0.0.1", 4), slots("10.0.0.2", 4)}},
		{"lsf columns", "hostA 4\nhostB\t2", []Host{slots("hostA", 4), slots("hostB", 2)}},
		{"kubernetes", "job-worker-0.job.ns.svc slots=2", []Host{slots("job-worker-0.job.ns.svc", 2)}},
		{"pbs node file: a line per slot", "n1\nn1\nn2\nn1\n", []Host{slots("n1", 3), slots("n2", 1)}},
		{"repeats add, adjacent or not", "a slots=2\nb slots=1\na slots=1", []Host{slots("a", 3), slots("b", 1)}},
		{"a repeat without a count is one slot", "a slots=2\na\nb", []Host{slots("a", 3), slots("b", 1)}},
		{"max_slots of repeats add", "a slots=2 max_slots=3\na slots=2 max_slots=3", []Host{capped("a", 4, 6)}},
		{"star and auto are all the cores", "a:*\nb:auto\nc slots=*\nd slots=auto",
			[]Host{all("a"), all("b"), all("c"), all("d")}},
		{"star wins over numbers", "a:*\na:2", []Host{all("a")}},
		{"several hosts on a line", "a:2, b slots=3 ,c", []Host{slots("a", 2), slots("b", 3), bare("c")}},
		{"ranges", "node[01-03,7]:2", []Host{slots("node01", 2), slots("node02", 2), slots("node03", 2),
			slots("node7", 2)}},
		{"ranges with attributes", "u@r[0-1]n[8-9]-ib slots=3 port=22",
			[]Host{{Name: "r0n8-ib", User: "u", Slots: 3, Port: 22}, {Name: "r0n9-ib", User: "u", Slots: 3, Port: 22},
				{Name: "r1n8-ib", User: "u", Slots: 3, Port: 22}, {Name: "r1n9-ib", User: "u", Slots: 3, Port: 22}}},
		{"addresses with ranges", "10.0.0.[9-10]:2", []Host{slots("10.0.0.9", 2), slots("10.0.0.10", 2)}},
		{"IPv6 in brackets", "[fe80::1]:2\n[2001:db8::1]", []Host{slots("fe80::1", 2), bare("2001:db8::1")}},
		{"IPv6 without brackets", "2001:db8::1\nfe80::1%eth0 slots=2\nu@::1",
			[]Host{bare("2001:db8::1"), slots("fe80::1%eth0", 2), {Name: "::1", User: "u", Bare: true}}},
		{"exclusion before and after", "^a\na\nb\nc\n^c", []Host{bare("b")}},
		{"exclusion of ranges", "n[1-5]:2\n^n[2-4]", []Host{slots("n1", 2), slots("n5", 2)}},
		{"exclusion takes the whole name for the short one", "a.cluster\nb.cluster\n^a", []Host{bare("b.cluster")}},
		{"line comments", "# head\na # tail\n// more\nb//tail\nc slots=2#4\n",
			[]Host{bare("a"), bare("b"), slots("c", 2)}},
		{"block comments", "/* one */ a slots=2 /* two */ max_slots=3\n/* over\nb slots=9\nlines */ c slots=1 /**/\n",
			[]Host{capped("a", 2, 3), slots("c", 1)}},
		{"a block comment inside a line comment opens nothing", "a slots=1 # /*\nb slots=1",
			[]Host{slots("a", 1), slots("b", 1)}},
		{"windows", "\ufeffa slots=2\r\nb slots=1\r\n\r\n", []Host{slots("a", 2), slots("b", 1)}},
		{"blanks everywhere", "\t a  slots\t=  2  \n\n   \n", []Host{slots("a", 2)}},
		{"case does not make a host", "Node01 slots=1\nnode01 slots=1", []Host{slots("Node01", 2)}},
		{"a first label is the host", "node01 slots=1\nnode01.cluster slots=1", []Host{slots("node01", 2)}},
		{"a first label is the host, other order", "node01.cluster slots=1\nnode01 slots=1",
			[]Host{slots("node01.cluster", 2)}},
		{"other domains are other hosts", "n.a slots=1\nn.b slots=1", []Host{slots("n.a", 1), slots("n.b", 1)}},
		{"addresses have no first label", "10.0.0.1 slots=1\n10.0.0.2 slots=1\n10 slots=1",
			[]Host{slots("10.0.0.1", 1), slots("10.0.0.2", 1), slots("10", 1)}},
		{"ports make hosts", "h slots=1 port=1001\nh slots=1 port=1002\nh slots=2 port=1001",
			[]Host{{Name: "h", Slots: 3, Port: 1001}, {Name: "h", Slots: 1, Port: 1002}}},
		{"a user is kept by later mentions", "u@h slots=1\nh slots=1", []Host{{Name: "h", User: "u", Slots: 2}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse("hosts", strings.NewReader(tt.file))
			if err != nil {
				t.Fatalf("Parse(%q): %v", tt.file, err)
			}
			if !reflect.DeepEqual(got.Hosts, tt.want) {
				t.Errorf("Parse(%q) =\n%+v, want\n%+v", tt.file, got.Hosts, tt.want)
			}
		})
	}
}

func TestParseListCountsMentions(t *testing.T) {
	one := Host{Name: "a", Slots: 1, Bare: true}
	tests := []struct {
		list string
		want []Host
	}{
		{"a", []Host{one}},
		{"a,b", []Host{one, {Name: "b", Slots: 1, Bare: true}}},
		{"a,b,a", []Host{slots("a", 2), {Name: "b", Slots: 1, Bare: true}}},
		{"a:4,b:*,c", []Host{slots("a", 4), all("b"), {Name: "c", Slots: 1, Bare: true}}},
		{"a:2,a", []Host{slots("a", 3)}},
		{"a:2, a:1", []Host{slots("a", 3)}},
		{"n[1-2]:3,u@[::1]:2", []Host{slots("n1", 3), slots("n2", 3), {Name: "::1", User: "u", Slots: 2}}},
		{"a slots=2 port=2222,b:1", []Host{{Name: "a", Slots: 2, Port: 2222}, slots("b", 1)}},
		{"a,^b", []Host{one}},
	}
	for _, tt := range tests {
		got, err := ParseList("-H", tt.list)
		if err != nil {
			t.Errorf("ParseList(%q): %v", tt.list, err)
		} else if !reflect.DeepEqual(got.Hosts, tt.want) {
			t.Errorf("ParseList(%q) = %+v, want %+v", tt.list, got.Hosts, tt.want)
		}
	}
}

func TestErrorsNameTheLineAndWhatWasWanted(t *testing.T) {
	tests := []struct{ name, file, want string }{
		{"slots=0", "a\nnode03 slots=0 # none",
			`hosts:2: slots=0: want a count from 1 to 1048576, * or auto; ^host leaves a host out, in "node03 slots=0 # none"`},
		{"no number", "a slots=two", `hosts:1: slots=two: want a count from 1 to 1048576, * or auto, in "a slots=two"`},
		{"negative", "a slots=-1", `hosts:1: slots=-1: want a count from 1 to 1048576, * or auto, in "a slots=-1"`},
		{"too many slots", "a slots=1048577",
			`hosts:1: slots=1048577: want a count from 1 to 1048576, * or auto, in "a slots=1048577"`},
		{"no value", "a slots=", `hosts:1: "slots=" has no key or no value: want for example slots=4, in "a slots="`},
		{"no key", "a = 4", `hosts:1: "=4" has no key or no value: want for example slots=4, in "a = 4"`},
		{"forgotten =", "a slots4", `hosts:1: "slots4": did you mean slots=4?, in "a slots4"`},
		{"colon for =", "a slots:4", `hosts:1: "slots:4": did you mean slots=4?, in "a slots:4"`},
		{"forgotten max =", "a max_slots8", `hosts:1: "max_slots8": did you mean max_slots=8?, in "a max_slots8"`},
		{"blank for comma", "a b", `hosts:1: "b" is neither a count nor key=value: did you mean slots=4, or another line for another host?, in "a b"`},
		{"two counts", "a:2 slots=3", `hosts:1: slots=3: a second count of slots: want one, in "a:2 slots=3"`},
		{"two ports", "a port=1 port=2", `hosts:1: port=2: given a second time: want it once, in "a port=1 port=2"`},
		{"port out of range", "a port=65536", `hosts:1: port=65536: want a number from 1 to 65535, in "a port=65536"`},
		{"count after colon", "a:x", `hosts:1: a:x: want a count from 1 to 1048576, * or auto, in "a:x"`},
		{"relative count", "a:+1", `hosts:1: a:+1: want a count from 1 to 1048576, * or auto, in "a:+1"`},
		{"too many colons", "a:1:2:3", `hosts:1: "a:1:2:3" has 3 colons: want host:slots, or an IPv6 address, in "a:1:2:3"`},
		{"rank file", "rank 0=h slot=0-3", `hosts:1: this is a line of a rank file: want a hostfile, with lines like "node01 slots=4", in "rank 0=h slot=0-3"`},
		{"relative node", "+n1 slots=2", `hosts:1: "+n1" counts nodes of an allocation: want the name of a host, in "+n1 slots=2"`},
		{"no host", "slots=4", `hosts:1: "slots=4" where a host should stand: want for example "node01 slots=4", in "slots=4"`},
		{"an option for ssh", "-oProxyCommand=x",
			`hosts:1: "-oProxyCommand=x" where a host should stand: want for example "node01 slots=4", in "-oProxyCommand=x"`},
		{"a dash first", "-v", `hosts:1: host "-v": want a name of letters, digits and ._-, or an address, in "-v"`},
		{"a user with a dash first", "-l@h", `hosts:1: user "-l" in "-l@h": want letters, digits and ._-, in "-l@h"`},
		{"no user", "@h", `hosts:1: user "" in "@h": want letters, digits and ._-, in "@h"`},
		{"two users", "a@b@c", `hosts:1: host "b@c": want a name of letters, digits and ._-, or an address, in "a@b@c"`},
		{"another user", "u@h slots=1\nv@h slots=1",
			`hosts:2: user "v" for h, which had user "u" before: want one user for each host, in "v@h slots=1"`},
		{"users disagree", "u@h user=v", `hosts:1: user=v: want one user, of letters, digits and ._-, in "u@h user=v"`},
		{"odd letters", "n\x01de", `hosts:1: host "n\x01de": want a name of letters, digits and ._-, or an address, in "n\x01de"`},
		{"empty name with count", ":4", `hosts:1: host "": want a name that begins with a letter or digit, in ":4"`},
		{"comma at the end", "a:2,", `hosts:1: no host before or after a comma: want a host on both sides, in "a:2,"`},
		{"comma first", ",a", `hosts:1: no host before or after a comma: want a host on both sides, in ",a"`},
		{"open bracket", "n[1-2", `hosts:1: "n[1-2": a [ without its ], in "n[1-2"`},
		{"close bracket", "n1-2]", `hosts:1: "n1-2]": a ] without its [, in "n1-2]"`},
		{"range backwards", "n[4-1]", `hosts:1: "n[4-1]": range "4-1": want a number, or two with the smaller one first, in "n[4-1]"`},
		{"empty range", "n[]", `hosts:1: "n[]": range "": want a number, or two with the smaller one first, in "n[]"`},
		{"bracket first", "[1-2]n", `hosts:1: "[1-2]n" begins with a bracket: want [IPv6 address], or letters before a range as in n[1-4], in "[1-2]n"`},
		{"word after IPv6", "[::1]4", `hosts:1: "4" after the address in "[::1]4": want nothing or :slots, in "[::1]4"`},
		{"huge range", "n[1-9999999999]", `hosts:1: "n[1-9999999999]": range "1-9999999999": want 262144 hosts or fewer in all, in "n[1-9999999999]"`},
		{"huge product", "n[0-999]m[0-999]", `hosts:1: "n[0-999]m[0-999]" stands for too many hosts: want 262144 or fewer in all, in "n[0-999]m[0-999]"`},
		{"max below slots", "a slots=4 max_slots=2",
			`hosts:1: a has 4 slots and max_slots=2: want max_slots to be 4 or more, in "a slots=4 max_slots=2"`},
		{"max below the sum", "a slots=2 max_slots=3\na slots=2",
			`hosts:2: a has 4 slots and max_slots=3: want max_slots to be 4 or more, in "a slots=2"`},
		{"exclusion with a count", "^a:2", `hosts:1: ^a:2 is excluded: want nothing but its name, in "^a:2"`},
		{"open comment", "a slots=1\nb slots=1 /* and\nso on",
			`hosts:2: a comment begins with "/*" and never ends: want "*/", in "b slots=1 /* and"`},
		{"nothing", "# only\n\n", `hosts: no host in it: want for example "node01 slots=4"`},
		{"all excluded", "a\n^a", `hosts: every host in it is excluded with ^: want one that is not`},
		{"a program", "\x7fELF\x02\x01\x01\x00",
			`hosts: it is no text, it begins with "ELF" among other bytes: want a list of hosts`},
		{"UTF-16", "\xff\xfea\x00", `hosts: the file is in UTF-16: want UTF-8`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse("hosts", strings.NewReader(tt.file))
			if err == nil {
				t.Fatalf("Parse(%q) = %+v, want an error", tt.file, got)
			}
			if err.Error() != tt.want {
				t.Errorf("Parse(%q):\n got %s\nwant %s", tt.file, err, tt.want)
			}
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Errorf("Parse(%q): error of type %T, want *Error", tt.file, err)
			}
		})
	}
}

func TestListErrorsHaveNoLine(t *testing.T) {
	_, err := ParseList("-H", "a:0,b")
	if want := `-H: a:0: want a count from 1 to 1048576, * or auto; ^host leaves a host out, in "a:0,b"`; err == nil ||
		err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	_, err = ParseList("-H", "")
	if want := `-H: no host in it: want for example "node01 slots=4"`; err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestALongLineIsQuotedInPart(t *testing.T) {
	_, err := ParseList("-H", strings.Repeat("a,", 1000))
	if err == nil || len(err.Error()) > 200 {
		t.Errorf("got %v, want an error of less than 200 bytes", err)
	}
}

func TestWhatIsNotFollowedIsAWarning(t *testing.T) {
	tests := []struct {
		file string
		want []string
	}{
		{"a slots=2\nb slotz=3", []string{"hosts:2: slotz=3 is ignored: its key is not known here; known are slots, max_slots, user and port"}},
		{"a:1 binding=user:0,2", []string{"hosts:1: binding=user:0,2 is ignored: the flag -bind-to chooses cores"}},
		{"10.0.0.1:4:pub", []string{`hosts:1: public address "pub" is ignored: ranks find each other's addresses themselves`}},
		{"10.0.0.1 public_addr=pub", []string{`hosts:1: public_addr=pub is ignored: ranks find each other's addresses themselves`}},
		{"a slots=2\na", []string{"hosts:2: a is named with a count and without: one slot for each mention without, 3 in all"}},
		{"a slots=2\n^b", []string{"hosts: ^b excludes no host of this list"}},
		{"^b", nil},
		{"a\na\nb", nil},
		{"a\n^a.cluster\nb", nil},
	}
	for _, tt := range tests {
		got, err := Parse("hosts", strings.NewReader(tt.file))
		if err != nil {
			t.Errorf("Parse(%q): %v", tt.file, err)
		} else if !reflect.DeepEqual(got.Warnings, tt.want) {
			t.Errorf("Parse(%q) warns %q, want %q", tt.file, got.Warnings, tt.want)
		}
	}
}

func TestParseReportsAFailingReader(t *testing.T) {
	broken := errors.New("disk on fire")
	_, err := Parse("hosts", failingReader{broken})
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "hosts: ") {
		t.Errorf("got %v, want hosts: disk on fire", err)
	}
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

func TestTheNumberOfHostsIsBounded(t *testing.T) {
	full := "n[1-262144]\n"
	l, err := Parse("hosts", strings.NewReader(full))
	if err != nil || len(l.Hosts) != MaxHosts {
		t.Fatalf("got %d hosts and %v, want %d", len(l.Hosts), err, MaxHosts)
	}
	if _, err := Parse("hosts", strings.NewReader(full+"one-more")); err == nil {
		t.Errorf("%d hosts were accepted", MaxHosts+1)
	}
	long := strings.Repeat("x", longestName)
	if _, err := ParseList("-H", long); err != nil {
		t.Errorf("a name of %d bytes: %v", longestName, err)
	}
	for _, pattern := range []string{long + "x", long + "[1-2]", "x[1-2]" + long} {
		if _, err := ParseList("-H", pattern); err == nil {
			t.Errorf("a name of more than %d bytes was accepted", longestName)
		}
	}
}

func TestSame(t *testing.T) {
	tests := []struct {
		a, b string
		want bool
	}{
		{"n1", "n1", true},
		{"n1", "N1", true},
		{"n1", "n1.cluster", true},
		{"n1", "n1.", true},
		{"n1", "n10", false},
		{"n1.a", "n1.b", false},
		{"n1.a", "n1.a.b", false},
		{"10.0.0.1", "10", false},
		{"10.0.0.1", "10.0.0.1", true},
		{"::1", "::1", true},
	}
	for _, tt := range tests {
		if got := Same(tt.a, tt.b); got != tt.want {
			t.Errorf("Same(%q, %q) = %v, want %v", tt.a, tt.b, got, tt.want)
		}
		if got := Same(tt.b, tt.a); got != tt.want {
			t.Errorf("Same(%q, %q) = %v, want %v", tt.b, tt.a, got, tt.want)
		}
	}
}
