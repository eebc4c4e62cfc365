package comm_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"gompi/comm"
)

// What GOMPI_LOG=tuning prints is what collectives do.
func TestWaysOfCollectivesAreLogged(t *testing.T) {
	const room, levels, table = "2 ranks of one host, through memory", "4 ranks of 2 hosts, in two levels", "by messages:"
	barrier := func(ctx context.Context, c *comm.Comm) error { return comm.Barrier(ctx, c) }
	for _, tt := range []struct {
		name           string
		cfg            comm.Config
		run            func(cfg comm.Config) []error
		wants, forbids []string
	}{
		{"in a room", comm.Config{}, func(cfg comm.Config) []error { return overMemoryWith(t, 2, cfg, barrier) },
			[]string{room, "0-: in one step", "in place, if"}, []string{table, "allreduce 0-"}},
		{"in a room, tuned", comm.Config{Tuning: "allreduce:ring"}, func(cfg comm.Config) []error { return overMemoryWith(t, 2, cfg, barrier) },
			[]string{room, "0-: in one step", "tuned, so by messages among all:", "allreduce 0-: ring"}, []string{"barrier "}},
		{"in levels", comm.Config{}, func(cfg comm.Config) []error {
			return overHosts(t, []int32{0, 0, 1, 1}, cfg, barrier)
		}, []string{levels, "2 ranks of this host, through memory", "0-: in one step", "allreduce 0-"}, []string{room, "tuned"}},
		{"in levels, tuned", comm.Config{Tuning: "bcast:1k-2k:chain"}, func(cfg comm.Config) []error {
			return overHosts(t, []int32{0, 0, 1, 1}, cfg, barrier)
		}, []string{levels, "tuned, so by messages among all:", "bcast 1k-: chain", "bcast 2k-: not tuned"}, []string{room}},
	} {
		var log bytes.Buffer
		tt.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		if err := errors.Join(tt.run(tt.cfg)...); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		for _, want := range tt.wants {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%s: no %q in\n%s", tt.name, want, &log)
			}
		}
		for _, bad := range tt.forbids {
			if strings.Contains(log.String(), bad) {
				t.Errorf("%s: %q in\n%s", tt.name, bad, &log)
			}
		}
	}
}
