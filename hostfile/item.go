package hostfile

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// An item is a mention of a host, or of a range of hosts.
type item struct {
	names    []string
	exclude  bool
	user     string
	port     int
	counted  bool // a count was written: slots, or all
	slots    int
	all      bool
	maxSlots int
}

// A cursor walks over a line.
type cursor struct {
	s  string
	at int
}

func (c *cursor) done() bool { return c.at == len(c.s) }

func (c *cursor) sees(b byte) bool { return c.at < len(c.s) && c.s[c.at] == b }

func isBlank(b byte) bool { return b == ' ' || b == '\t' || b == '\r' || b == '\v' || b == '\f' }

func (c *cursor) skipBlanks() {
	for c.at < len(c.s) && isBlank(c.s[c.at]) {
		c.at++
	}
}

// until returns the text before the next blank or byte of stops.
func (c *cursor) until(stops string) string {
	from := c.at
	for c.at < len(c.s) && !isBlank(c.s[c.at]) && strings.IndexByte(stops, c.s[c.at]) < 0 {
		c.at++
	}
	return c.s[from:c.at]
}

// host returns the text before the next blank, or comma outside brackets.
func (c *cursor) host() string {
	from, depth := c.at, 0
	for ; c.at < len(c.s) && !isBlank(c.s[c.at]); c.at++ {
		switch c.s[c.at] {
		case '[':
			depth++
		case ']':
			depth--
		case ',':
			if depth <= 0 {
				return c.s[from:c.at]
			}
		}
	}
	return c.s[from:c.at]
}

// items enters all items of a line without comments.
func (p *parser) items(s string) error {
	c := cursor{s: s}
	if c.skipBlanks(); c.done() {
		return nil
	}
	for {
		c.skipBlanks()
		it, err := p.item(&c)
		if err != nil {
			return err
		}
		if err := p.add(it); err != nil {
			return err
		}
		if c.done() {
			return nil
		}
		c.at++ // the comma at which an item ends
	}
}

// item reads an item, up to the end of the line or the comma after it.
func (p *parser) item(c *cursor) (*item, error) {
	word := c.host()
	if word == "" {
		return nil, p.errorf("no host before or after a comma: want a host on both sides")
	}
	if word == "rank" && looksLikeRankFile(c.s[c.at:]) {
		return nil, p.errorf("this is a line of a rank file: want a hostfile, with lines like \"node01 slots=4\"")
	}
	it := new(item)
	if err := p.host(it, word); err != nil {
		return nil, err
	}
	for {
		c.skipBlanks()
		if c.done() || c.sees(',') {
			break
		}
		if err := p.attribute(c, it); err != nil {
			return nil, err
		}
	}
	if it.exclude && (it.counted || it.maxSlots != 0 || it.user != "" || it.port != 0) {
		return nil, p.errorf("%s is excluded: want nothing but its name", word)
	}
	return it, nil
}

func looksLikeRankFile(afterRank string) bool {
	number, _, ok := strings.Cut(afterRank, "=")
	return ok && allDigits(strings.TrimSpace(number))
}

// host reads the first word of an item: user, host, number of slots.
func (p *parser) host(it *item, word string) error {
	rest := word
	rest, it.exclude = strings.CutPrefix(rest, "^")
	if strings.HasPrefix(rest, "+") {
		return p.errorf("%q counts nodes of an allocation: want the name of a host", word)
	}
	if user, after, ok := strings.Cut(rest, "@"); ok {
		if !validName(user) {
			return p.errorf("user %q in %q: want letters, digits and ._-", user, word)
		}
		it.user, rest = user, after
	}
	if strings.Contains(rest, "=") {
		return p.errorf("%q where a host should stand: want for example \"node01 slots=4\"", word)
	}
	pattern, count, counted, err := p.splitCount(rest)
	if err != nil {
		return err
	}
	if counted {
		if err := p.setCount(it, word, count); err != nil {
			return err
		}
	}
	if isAddr(pattern) {
		it.names = []string{pattern}
		return nil
	}
	it.names, err = expand(pattern, MaxHosts)
	if err != nil {
		return p.errorf("%v", err)
	}
	return nil
}

// splitCount splits host:count. A host may hold colons itself.
func (p *parser) splitCount(s string) (host, count string, counted bool, err error) {
	if strings.HasPrefix(s, "[") {
		inside, after, closed := strings.Cut(s[1:], "]")
		if !closed || !validIPv6(inside) {
			return "", "", false, p.errorf("%q begins with a bracket: want [IPv6 address], or letters before a range as in n[1-4]", s)
		}
		count, counted = strings.CutPrefix(after, ":")
		if after != "" && !counted {
			return "", "", false, p.errorf("%q after the address in %q: want nothing or :slots", after, s)
		}
		return inside, count, counted, nil
	}
	if validIPv6(s) {
		return s, "", false, nil
	}
	parts := strings.Split(s, ":")
	if len(parts) == 3 && isAddr(parts[0]) && allDigits(parts[1]) {
		p.warnf("public address %q is ignored: ranks find each other's addresses themselves", parts[2])
		return parts[0], parts[1], true, nil
	}
	if len(parts) > 2 {
		return "", "", false, p.errorf("%q has %d colons: want host:slots, or an IPv6 address", s, len(parts)-1)
	}
	if len(parts) == 2 {
		return parts[0], parts[1], true, nil
	}
	return s, "", false, nil
}

// validIPv6 also bounds the zone, because netip accepts any.
func validIPv6(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6() && (a.Zone() == "" || validName(a.Zone()))
}

// attribute reads key=value, or a bare count.
func (p *parser) attribute(c *cursor, it *item) error {
	key := c.until("=,")
	c.skipBlanks()
	if !c.sees('=') {
		return p.word(it, key)
	}
	c.at++
	c.skipBlanks()
	kind := attributeKind(key)
	stops := ","
	if kind == "binding" { // its values are lists: user:0,2,4
		stops = ""
	}
	value := c.until(stops)
	if key == "" || value == "" {
		return p.errorf("%q has no key or no value: want for example slots=4", key+"="+value)
	}
	as := key + "=" + value
	switch kind {
	case "slots":
		return p.setCount(it, as, value)
	case "max":
		return p.setOnce(&it.maxSlots, as, value, MaxSlots)
	case "port":
		return p.setOnce(&it.port, as, value, 65535)
	case "user":
		if !validName(value) || it.user != "" && it.user != value {
			return p.errorf("%s: want one user, of letters, digits and ._-", as)
		}
		it.user = value
	case "binding":
		p.warnf("%s is ignored: the flag -bind-to chooses cores", as)
	case "public":
		p.warnf("%s is ignored: ranks find each other's addresses themselves", as)
	default:
		p.warnf("%s is ignored: its key is not known here; known are slots, max_slots, user and port", as)
	}
	return nil
}

// attributeKind maps the many spellings of a key.
func attributeKind(key string) string {
	key = strings.ReplaceAll(strings.ToLower(key), "-", "_")
	switch key {
	case "slots", "slot", "cpu", "cpus", "count", "np", "ppn":
		return "slots"
	case "user", "username", "user_name":
		return "user"
	case "port", "binding":
		return key
	case "public_addr":
		return "public"
	}
	if base, ok := strings.CutPrefix(key, "max_"); ok && isMaxBase(base) {
		return "max"
	}
	if base, ok := strings.CutSuffix(key, "_max"); ok && isMaxBase(base) {
		return "max"
	}
	return ""
}

func isMaxBase(s string) bool {
	return s == "slots" || s == "slot" || s == "cpu" || s == "cpus" || s == "count"
}

// word reads a word without "=": a count, or a mistake that deserves a hint.
func (p *parser) word(it *item, word string) error {
	if allDigits(word) {
		return p.setCount(it, word, word)
	}
	name := strings.TrimRight(word, "0123456789")
	number, name := word[len(name):], strings.TrimRight(name, ":-_")
	if kind := attributeKind(name); kind == "slots" || kind == "max" || kind == "port" {
		if number == "" {
			number = "4"
		}
		return p.errorf("%q: did you mean %s=%s?", word, name, number)
	}
	return p.errorf("%q is neither a count nor key=value: did you mean slots=4, or another line for another host?", word)
}

// setCount enters a count of slots; as is the user's spelling.
func (p *parser) setCount(it *item, as, value string) error {
	if it.counted {
		return p.errorf("%s: a second count of slots: want one", as)
	}
	it.counted = true
	if value == "*" || value == "auto" {
		it.all = true
		return nil
	}
	n, err := number(value, MaxSlots)
	if err != nil {
		hint := ""
		if value == "0" {
			hint = "; ^host leaves a host out"
		}
		return p.errorf("%s: want a count from 1 to %d, * or auto%s", as, MaxSlots, hint)
	}
	it.slots = n
	return nil
}

func (p *parser) setOnce(field *int, as, value string, most int) error {
	n, err := number(value, most)
	if err != nil {
		return p.errorf("%s: %v", as, err)
	}
	if *field != 0 {
		return p.errorf("%s: given a second time: want it once", as)
	}
	*field = n
	return nil
}

// number reads digits as a number from 1 to most.
func number(s string, most int) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || !allDigits(s) || n < 1 || n > most {
		return 0, fmt.Errorf("want a number from 1 to %d", most)
	}
	return n, nil
}

func allDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
