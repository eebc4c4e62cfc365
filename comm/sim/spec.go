package sim

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A parameter is a parameter of a Machine in text.
type parameter struct {
	name, want, does string
	set              func(m *Machine, text string) bool // false if text makes no sense
	get              func(m *Machine) string            // "" for the value in the zero Machine
}

// parameters are the parameters of Parse.
var parameters = []parameter{
	duration("latency", "from a message's last byte's departure to its arrival",
		func(m *Machine) *float64 { return &m.Between.Latency }),
	duration("overhead", "of a processor for each message, at either end",
		func(m *Machine) *float64 { return &m.Between.Overhead }),
	perByte("copy", "what a processor moves to or from the network",
		func(m *Machine) *float64 { return &m.Between.Copy }),
	perByte("rate", "of a host's link, each way", func(m *Machine) *float64 { return &m.Wire }),
	duration("gap", "what a message takes on a link besides its bytes", func(m *Machine) *float64 { return &m.Gap }),
	number("burst", "bytes that pass at once after a pause of the link", func(m *Machine) *int { return &m.Burst }),
	perByte("reduce", "what a processor combines", func(m *Machine) *float64 { return &m.Reduce }),
	number("ppn", "ranks of a host", func(m *Machine) *int { return &m.RanksPerHost }),
	number("rails", "links of a host", func(m *Machine) *int { return &m.Rails }),
	duration("inside-latency", "latency inside a host", func(m *Machine) *float64 { return &m.Inside.Latency }),
	duration("inside-overhead", "overhead inside a host", func(m *Machine) *float64 { return &m.Inside.Overhead }),
	perByte("inside-copy", "copy inside a host", func(m *Machine) *float64 { return &m.Inside.Copy }),
	duration("shm-latency", "from when a rank has stored in shared memory until another sees it",
		func(m *Machine) *float64 { return &m.Shared.Latency }),
	duration("shm-peer", "of a processor, to look whether another rank has",
		func(m *Machine) *float64 { return &m.Shared.Peer }),
	perByte("shm-copy", "what a processor stores, or reads and combines",
		func(m *Machine) *float64 { return &m.Shared.Copy }),
	perByte("shm-total", "what all of a host do", func(m *Machine) *float64 { return &m.Shared.Total }),
	number("processors", "of a host, if its ranks share them", func(m *Machine) *int { return &m.Processors }),
	number("together", "hosts that share the processors of one", func(m *Machine) *int { return &m.Hosts }),
	duration("switch", "what it takes to wake a rank where processors are shared",
		func(m *Machine) *float64 { return &m.Switch }),
	number("eager", "bytes of the longest message that is sent before its receiver is ready",
		func(m *Machine) *int { return &m.Eager }),
	number("buffer", "bytes that a socket takes before they leave", func(m *Machine) *int { return &m.Buffer }),
	{"tree", "switches such as 32:4 or 8:2+64:4",
		"hosts below each switch of a level, and by what factor its link upward carries less than those send",
		setTree, treeText},
}

// Parse returns the machine that text describes: the name of one of Machines, parameters, or both,
// with commas between, such as "cluster,rate=100gbit,ppn=4,tree=32:4". Other parameters are as in
// the zero Machine.
func Parse(text string) (Machine, error) {
	var m Machine
	tree := ""
	for i, item := range strings.Split(text, ",") {
		name, _, ok := strings.Cut(item, "=")
		var err error
		switch {
		case !ok && i == 0:
			m, err = Named(item)
		case !ok:
			err = fmt.Errorf("machine parameter %q: want NAME=VALUE", item)
		case name == "tree": // its value depends on other parameters
			tree = item
		default:
			err = m.setParameter(item)
		}
		if err != nil {
			return m, err
		}
	}
	if tree != "" {
		return m, m.setParameter(tree)
	}
	return m, nil
}

func (m *Machine) setParameter(item string) error {
	name, value, _ := strings.Cut(item, "=")
	var names []string
	for _, p := range parameters {
		if p.name != name {
			names = append(names, p.name)
			continue
		}
		if !p.set(m, value) {
			return fmt.Errorf("machine parameter %s=%q: want %s", name, value, p.want)
		}
		return nil
	}
	return fmt.Errorf("machine parameter %q: want one of %s", name, strings.Join(names, ", "))
}

// String returns m in the syntax of Parse, with times to a nanosecond and rates to six digits.
func (m *Machine) String() string {
	var items []string
	for _, p := range parameters {
		if text := p.get(m); text != "" {
			items = append(items, p.name+"="+text)
		}
	}
	return strings.Join(items, ",")
}

// A Parameter describes a name that Parse accepts.
type Parameter struct{ Name, Does, Want string }

// Parameters returns all parameters of Parse.
func Parameters() (all []Parameter) {
	for _, p := range parameters {
		all = append(all, Parameter{p.name, p.does, p.want})
	}
	return all
}

func duration(name, does string, of func(*Machine) *float64) parameter {
	return parameter{name, "a time such as 1.5us", does,
		func(m *Machine, text string) bool {
			d, err := time.ParseDuration(text)
			*of(m) = d.Seconds()
			return err == nil && d >= 0
		},
		func(m *Machine) string {
			if *of(m) == 0 {
				return ""
			}
			return strings.Replace(time.Duration(math.Round(*of(m)*1e9)).String(), "µ", "u", 1)
		},
	}
}

// perByte is a parameter whose value is a time per byte and whose text is a rate.
func perByte(name, does string, of func(*Machine) *float64) parameter {
	return parameter{name, "a rate such as 25gbit", does,
		func(m *Machine, text string) bool {
			for unit, bytes := range rates {
				if digits, ok := strings.CutSuffix(text, unit); ok {
					n, err := strconv.ParseFloat(digits, 64)
					*of(m) = 1 / (n * bytes)
					return err == nil && n > 0 && !math.IsInf(n, 0)
				}
			}
			return false
		},
		func(m *Machine) string {
			if *of(m) == 0 {
				return ""
			}
			return strconv.FormatFloat(1/(*of(m)*rates["mbit"]), 'g', 6, 64) + "mbit"
		},
	}
}

// rates are bytes per second.
var rates = map[string]float64{"kbit": 1e3 / 8, "mbit": 1e6 / 8, "gbit": 1e9 / 8}

func number(name, does string, of func(*Machine) *int) parameter {
	return parameter{name, "a number such as 8", does,
		func(m *Machine, text string) (ok bool) {
			n, err := strconv.ParseInt(text, 10, 32)
			*of(m) = int(n)
			return err == nil && n >= 0
		},
		func(m *Machine) string {
			if *of(m) == 0 {
				return ""
			}
			return strconv.Itoa(*of(m))
		},
	}
}

func setTree(m *Machine, text string) bool {
	m.Tree = nil
	below := 1
	for level := range strings.SplitSeq(text, "+") {
		hosts, factor, _ := strings.Cut(level, ":")
		n, err := strconv.Atoi(hosts)
		f, errFactor := strconv.ParseFloat(factor, 64)
		if err != nil || errFactor != nil || n <= below || n%below != 0 || !(f > 0 && f < 1e6) {
			return false
		}
		m.Tree = append(m.Tree, m.Oversubscribed(n, f, 0))
		below = n
	}
	return true
}

func treeText(m *Machine) string {
	var levels []string
	for _, l := range m.Tree {
		factor := l.Up / m.Oversubscribed(l.Hosts, 1, 0).Up
		levels = append(levels, fmt.Sprintf("%d:%.6g", l.Hosts, factor))
	}
	return strings.Join(levels, "+")
}
