package contest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gompi/bench/internal/measure"
)

var errNoUCX = errors.New("not installed (Debian: apt-get install gcc libucx-dev)")

// UCX returns our C program over UCX itself as an Entrant. It starts two ranks, which use the named
// transports of UCX in the way gompi does: tcp on loopback.
func (w *Workshop) UCX(ctx context.Context, transports string) (Entrant, error) {
	try := Command{Args: []string{"gcc", "-E", "-include", "ucp/api/ucp.h", "-x", "c", "/dev/null"}}
	if _, err := try.Run(ctx, toolLimit); err != nil {
		return Entrant{}, errNoUCX
	}
	binary, err := w.build(ctx, "ucx", "gcc", "ucxbench", "-lucp", "-lucs")
	if err != nil {
		return Entrant{}, err
	}
	out, err := Command{Args: []string{binary, "-version"}}.Run(ctx, toolLimit)
	if err != nil {
		return Entrant{}, fmt.Errorf("ucxbench does not work here: %w", err)
	}
	return Entrant{
		Name: "ucx", Version: versionOf(string(out.Stdout)),
		launcher: binary, env: ucxEnv(transports),
		lacks: slices.DeleteFunc(measure.Names(), func(op string) bool {
			return slices.Contains([]string{"latency", "bw"}, op)
		}),
		place: func(np, _ int) []string { return []string{"-np", strconv.Itoa(np)} },
	}, nil
}

// ucxEnv has UCX use the named transports: shared memory has error mode PEER only if it is told to.
// Where it is not used UCX would warn of that, and on standard output.
func ucxEnv(transports string) []string {
	env := []string{
		"UCX_TLS=" + transports, "UCX_MM_ERROR_HANDLING=y",
		"UCX_WARN_UNUSED_ENV_VARS=n", "UCX_LOG_FILE=stderr",
	}
	if slices.Contains(strings.Split(transports, ","), "tcp") {
		env = append(env, "UCX_NET_DEVICES=lo")
	}
	return env
}

// Apart returns e, which gompirun starts, with each rank on a host of its own: an address of
// loopback, at most 254. So they use no shared memory of gompi's.
func (e Entrant) Apart() Entrant {
	e.place = func(np, _ int) []string {
		hosts := make([]string, np)
		for rank := range hosts {
			hosts[rank] = fmt.Sprintf("127.0.0.%d", 1+rank)
		}
		return []string{"-np", strconv.Itoa(np), "-H", strings.Join(hosts, ",")}
	}
	return e
}
