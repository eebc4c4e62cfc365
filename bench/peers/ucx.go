package peers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gompi/bench/internal/measure"
	"gompi/bench/internal/runner"
)

// UCX is the name of the C program over UCX itself. overUCX is the prefix of a transport by which
// gompi uses the named transports of UCX.
const (
	UCX     = "ucx"
	overUCX = "ucx:"
)

// enterUCX starts two ranks on gompi's transports of UCX, which they use as gompi does.
func (b *Bench) enterUCX(ctx context.Context) (e runner.Entrant, err error) {
	transports, ok := strings.CutPrefix(b.Transport, overUCX)
	if !ok || b.Hosts != nil {
		return e, errors.New("want -transport ucx:NAMES for gompi and UCX, and no other hosts")
	}
	try := runner.Command{Args: []string{"gcc", "-E", "-include", "ucp/api/ucp.h", "-x", "c", "/dev/null"}}
	if _, err := try.Run(ctx, toolLimit); err != nil {
		return e, errors.New("not installed (apt-get install gcc libucx-dev)")
	}
	binary, err := b.build(ctx, library{name: UCX, link: []string{"-lucp", "-lucs"}}, "gcc", "ucxbench.c", nil)
	if err != nil {
		return e, err
	}
	output, err := runner.Command{Args: []string{binary, "-version"}}.Run(ctx, toolLimit)
	if err != nil {
		return e, fmt.Errorf("ucxbench does not work here: %w", err)
	}
	// Shared memory has error mode PEER only on request. Without shared memory UCX would warn of
	// the unused variable, on standard output.
	env := []string{"UCX_TLS=" + transports, "UCX_MM_ERROR_HANDLING=y", "UCX_WARN_UNUSED_ENV_VARS=n",
		"UCX_LOG_FILE=stderr"}
	if slices.Contains(strings.Split(transports, ","), "tcp") {
		env = append(env, "UCX_NET_DEVICES=lo")
	}
	lacks := slices.DeleteFunc(measure.Names(), func(op string) bool { return op == "latency" || op == "bw" })
	return runner.Entrant{Version: versionOf(string(output.Stdout)), Lacks: lacks,
		Start: func(np int, args ...string) runner.Job {
			return runner.Job{{Args: slices.Concat([]string{binary, "-np", strconv.Itoa(np)}, args), Env: env}}
		}}, nil
}

// loopbackHosts returns n addresses of loopback, at most 254.
func loopbackHosts(n int) []string {
	hosts := make([]string, n)
	for rank := range hosts {
		hosts[rank] = fmt.Sprintf("127.0.0.%d", 1+rank)
	}
	return hosts
}
