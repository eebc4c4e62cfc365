package sim

import (
	"strings"
	"testing"
)

func TestAMachineIsReadAsItIsWritten(t *testing.T) {
	for _, text := range []string{
		"latency=12us,overhead=2us,rate=25000mbit",
		"latency=1.5us,rate=10mbit,gap=90us,burst=3028,ppn=4,rails=2,tree=8:2+64:4",
		"inside-latency=1us,inside-overhead=200ns,inside-copy=80000mbit,processors=2,together=16,switch=12us,eager=262144,buffer=262144",
	} {
		m, err := Parse(text)
		if err != nil || m.String() != text {
			t.Errorf("%q is read as %q, %v", text, m.String(), err)
		}
	}
	for _, m := range Machines {
		got, err := Parse(m.String())
		if err != nil || got.String() != m.String() {
			t.Errorf("%s: %q is read as %q, %v", m.Name, m.String(), got.String(), err)
		}
	}
	m, err := Parse("tree=4:2,cluster")
	if err == nil {
		t.Errorf("%+v: want an error, as a name stands first", m)
	}
	if m, err = Parse("cluster,tree=4:2,ppn=2"); err != nil || m.Tree[0].Up != m.Wire*2/4 || m.RanksPerHost != 2 ||
		m.Between.Latency != 6*us {
		t.Errorf("%+v, %v: want the cluster with two ranks to a host below switches that carry half", m, err)
	}
}

func TestParseRefusesAndSaysWhatItWants(t *testing.T) {
	for text, want := range map[string]string{
		"fast":               `machine "fast": want one of network, cluster, oversubscribed`,
		"network,fast":       `machine parameter "fast": want NAME=VALUE`,
		"speed=1":            `machine parameter "speed": want one of latency, `,
		"latency=1":          `machine parameter latency="1": want a time such as 1.5us`,
		"latency=-1us":       "want a time",
		"rate=0gbit":         `machine parameter rate="0gbit": want a rate such as 25gbit`,
		"rate=25":            "want a rate",
		"ppn=-1":             "want a number",
		"rate=1gbit,tree=8":  `machine parameter tree="8": want switches such as`,
		"tree=8:2+12:2":      "want switches",
		"rate=1gbit,tree=1:": "want switches",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %s", text, err, want)
		}
	}
}
