package cli

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Users of Open MPI set MCA parameters: on the line, as -mca NAME VALUE, and as variables, as
// OMPI_MCA_NAME=VALUE. gompi has none, but has flags for some of their choices.

// A twin is the translation of MCA parameters to a flag of gompirun.
type twin struct {
	params []string // synonyms, or parts of one flag
	flag   string   // gompirun's flag
	ours   string   // our variable for it, which precedes Open MPI's; "" for none

	// values returns the flag's values, none if the parameters ask for the default. nil stands for
	// the value of the first parameter that is set.
	values func(get parameters) ([]string, error)

	// lineOnly means that the variables of these parameters are read elsewhere, with lower
	// precedence.
	lineOnly bool

	// unless are flags that take precedence over the parameters.
	unless []string
}

// parameters returns the value of the first parameter that is set, "" if none is.
type parameters func(names ...string) string

// twins are the translated parameters.
func twins() []twin {
	return []twin{
		{params: []string{"plm_rsh_agent", "plm_ssh_agent", "plm_rsh_args", "plm_ssh_args"}, flag: "rsh",
			values: mcaLogin, lineOnly: true},
		{params: []string{"orte_default_hostfile", "prte_default_hostfile"}, flag: "hostfile", lineOnly: true,
			unless: []string{"hostfile", "host"}},
		{params: []string{"btl_tcp_if_include", "btl_tcp_if_exclude"}, flag: "iface", ours: "GOMPI_IFACE",
			values: mcaInterfaces},
		{params: []string{"btl_tcp_port_min_v4", "btl_tcp_port_range_v4", "btl_tcp_port_min_v6",
			"btl_tcp_port_range_v6"}, flag: "port-range",
			ours: "GOMPI_PORT_RANGE", values: mcaPorts},
		{params: []string{"mca_base_env_list"}, flag: "x-all", values: mcaExports},
		{params: []string{"rmaps_base_mapping_policy", "rmaps_default_mapping_policy"}, flag: "map-by"},
		{params: []string{"rmaps_base_ranking_policy", "rmaps_default_ranking_policy"}, flag: "rank-by"},
		{params: []string{"hwloc_base_binding_policy", "hwloc_default_binding_policy"}, flag: "bind-to"},
		{params: []string{"hwloc_base_cpu_list", "hwloc_base_cpu_set", "hwloc_default_cpu_list"}, flag: "cpu-list"},
		{params: []string{"orte_rankfile", "rmaps_rank_file_path", "rmaps_rankfile_path"}, flag: "rankfile"},
		{params: []string{"rmaps_base_n_pernode"}, flag: "nproc-per-node"},
		{params: []string{"rmaps_base_oversubscribe", "rmaps_base_no_oversubscribe"}, flag: "oversubscribe",
			values: mcaOversubscribe},
	}
}

// of returns the values of the flag.
func (t *twin) of(get parameters) ([]string, error) {
	if t.values == nil {
		return []string{get(t.params...)}, nil
	}
	return t.values(get)
}

// mcaLogin returns the login command for other hosts.
func mcaLogin(get parameters) ([]string, error) {
	agent, _, _ := strings.Cut(get("plm_rsh_agent", "plm_ssh_agent"), ":") // the first of a list
	command := cmp.Or(strings.TrimSpace(agent), get("GOMPI_RSH"), "ssh")
	return []string{strings.TrimSpace(command + " " + get("plm_rsh_args", "plm_ssh_args"))}, nil
}

// mcaInterfaces returns the interfaces and networks to use, and, after ^, the ones to avoid.
func mcaInterfaces(get parameters) ([]string, error) {
	list := strings.FieldsFunc(get("btl_tcp_if_include"), func(r rune) bool { return r == ',' })
	for name := range strings.SplitSeq(get("btl_tcp_if_exclude"), ",") {
		if name != "" {
			list = append(list, "^"+name)
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	return []string{strings.Join(list, ",")}, nil
}

// mcaPorts returns the range of ports that Open MPI states as first port and count.
func mcaPorts(get parameters) ([]string, error) {
	number := func(names ...string) (int, error) {
		text := get(names...)
		if text == "" {
			return 0, nil
		}
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return 0, fmt.Errorf("%q: want a number up to 65535", text)
		}
		return int(n), nil
	}
	first, err := number("btl_tcp_port_min_v4", "btl_tcp_port_min_v6")
	count, err2 := number("btl_tcp_port_range_v4", "btl_tcp_port_range_v6")
	if err = errors.Join(err, err2); err != nil || first == 0 && count == 0 {
		return nil, err
	}
	first = cmp.Or(first, 1024)
	last := first + count - 1
	if count == 0 {
		last = 65535
	}
	return []string{fmt.Sprintf("%d-%d", first, min(last, 65535))}, nil
}

// mcaExports returns the variables of a list like A=1;B. Names with a star are omitted: all ranks
// have them.
func mcaExports(get parameters) ([]string, error) {
	delimiter := cmp.Or(get("mca_base_env_list_delimiter"), ";")
	list := strings.Split(get("mca_base_env_list"), delimiter)
	return slices.DeleteFunc(list, func(v string) bool { return v == "" || strings.HasSuffix(v, "*") }), nil
}

// mcaOversubscribe returns the choice of whether hosts may have more ranks than slots.
func mcaOversubscribe(get parameters) ([]string, error) {
	switch {
	case isTrue(get("rmaps_base_no_oversubscribe")):
		return []string{"false"}, nil
	case isTrue(get("rmaps_base_oversubscribe")):
		return []string{"true"}, nil
	}
	return nil, nil
}

// unlike are parameters with flags of another kind here, or without an effect. The first matching
// pattern counts.
var unlike = []struct {
	pattern *regexp.Regexp
	instead string // replacement to type, because such a choice must not be ignored
	why     string // reason to ignore it
}{
	{regexp.MustCompile(`^mca_base_env_list_delimiter$`), "", "it belongs to mca_base_env_list"},
	{regexp.MustCompile(`^(oob|prte|orte|ptl|pmix|if)_(.*_)?if_(include|exclude)$`), "",
		"gompirun reaches its agents over ssh alone"},
	{regexp.MustCompile(`_(if_(include|exclude|seq)|if_list|ipaddr_include|ipaddr_exclude|devices|device_list)$`),
		"type -iface LIST for TCP, or -x UCX_NET_DEVICES=LIST for UCX", ""},
	{regexp.MustCompile(`_no_schedule_local$`), others, ""},
	{regexp.MustCompile(`(_hostfile|_dash_host|_machinefile|^rmaps_seq_.*|_add_host)$`),
		"type -H LIST or -hostfile F", ""},
	{regexp.MustCompile(`(_env_list(_internal)?|_set_env|_fwd_environment|_unset_env)$`), "type -x NAME=VALUE", ""},
}

// A typedParameter is an MCA parameter on the line.
type typedParameter struct{ flag, name, value string }

// mcaFlags returns the flags, as --name=value, for the MCA parameters of a line, and notes
// ignored parameters.
func (s *Set) mcaFlags(used *usedHabits) (flags []string, err error) {
	known := map[string]bool{}
	for _, t := range twins() {
		at := slices.IndexFunc(used.params, func(p typedParameter) bool { return slices.Contains(t.params, p.name) })
		for _, name := range t.params {
			known[name] = true
		}
		if at < 0 || slices.ContainsFunc(t.unless, used.isTyped) {
			continue
		}
		first := used.params[at]
		values, err := t.of(used.get)
		if err == nil && t.flag != "x-all" && used.isTyped(t.flag) {
			err = fmt.Errorf("want it, or -%s", t.flag)
		}
		if err != nil {
			return nil, fmt.Errorf("-%s %s %s: %w", first.flag, first.name, first.value, err)
		}
		for _, value := range values {
			f := s.lookup(t.flag)
			if f == nil {
				return nil, fmt.Errorf("-%s %s: it is for the whole job: want it before the first program",
					first.flag, first.name)
			}
			flags = append(flags, "--"+f.Name+"="+value)
		}
	}
	for _, p := range used.params {
		if err := used.unlike(p, known[p.name]); err != nil {
			return nil, err
		}
	}
	return flags, nil
}

// unlike notes or refuses a parameter that is not translated.
func (u *usedHabits) unlike(p typedParameter, translated bool) error {
	same := func(o typedParameter) bool { return o.name == p.name && o.value != p.value }
	if i := slices.IndexFunc(u.params, same); i >= 0 && translated {
		return fmt.Errorf("-%s %s %s and %s: want one of them", p.flag, p.name, p.value, u.params[i].value)
	}
	if translated {
		return nil
	}
	for _, o := range unlike {
		if !o.pattern.MatchString(p.name) {
			continue
		}
		if o.instead != "" {
			return fmt.Errorf("-%s %s %s: %s", p.flag, p.name, p.value, o.instead)
		}
		u.ignore(Habit{Why: o.why}, p.flag+" "+p.name, []string{p.value})
		return nil
	}
	u.ignore(Habit{Why: mca}, p.flag, []string{p.name})
	return nil
}

// isTyped reports whether the line has a flag.
func (u *usedHabits) isTyped(flag string) bool {
	return slices.ContainsFunc(u.kept, func(k keptFlag) bool { return k.name == flag })
}

// get returns a parameter of the line, or else of the environment.
func (u *usedHabits) get(names ...string) string {
	for _, name := range names {
		for _, p := range u.params {
			if p.name == name {
				return p.value
			}
		}
	}
	if u.set.getenv == nil {
		return ""
	}
	return mcaVariable(u.set.getenv)(names...)
}

// mcaVariable returns the parameters of the environment.
func mcaVariable(lookup func(string) (string, bool)) parameters {
	return func(names ...string) string {
		for _, name := range names {
			for _, variable := range append(mcaNames(name), name) {
				if value, _ := lookup(variable); value != "" {
					return value
				}
			}
		}
		return ""
	}
}

// mcaNames returns the variables of a parameter.
func mcaNames(param string) []string { return []string{"OMPI_MCA_" + param, "PRTE_MCA_" + param} }

// MCAVariables returns the flags for the parameters that Open MPI's users have set in the
// environment.
func MCAVariables(lookup func(string) (string, bool)) (set []Variable) {
	for _, t := range twins() {
		if ours, _ := lookup(t.ours); t.lineOnly || ours != "" {
			continue
		}
		v := Variable{}
		for _, param := range t.params {
			for _, name := range mcaNames(param) {
				if value, _ := lookup(name); value != "" && v.Name == "" {
					v.Name, v.Value = name, value
				}
			}
		}
		if v.Name == "" {
			continue
		}
		values, err := t.of(mcaVariable(lookup))
		if err != nil {
			v.Flag, v.Wrong = "-"+t.flag, err
			set = append(set, v)
		}
		for _, value := range values {
			v.Flag = "-" + t.flag + "=" + value
			set = append(set, v)
		}
	}
	return set
}
