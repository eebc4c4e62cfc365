package core_test

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
	barrier := func(ctx context.Context, c *comm.Comm) error { return comm.Barrier(ctx, c) }
	for _, tt := range []struct {
		name           string
		cfg            comm.Config
		run            func(cfg comm.Config) []error
		wants, forbids []string
	}{
		{"in shared memory", comm.Config{}, func(cfg comm.Config) []error { return overMemoryWith(t, 2, cfg, barrier) },
			[]string{"2 ranks of 1 hosts", "barrier 0-: shm: one-step", "bcast 0-: shm: one-step",
				"allreduce 4097-: shm: rsag in 8 KiB"}, []string{"messages", "hier"}},
		{"in shared memory, tuned", comm.Config{Tuning: "allreduce:circulant"},
			func(cfg comm.Config) []error { return overMemoryWith(t, 2, cfg, barrier) },
			[]string{"bcast 0-: shm: one-step", "allreduce 0-: messages: circulant"}, []string{"allreduce 0-: shm"}},
		{"on two hosts", comm.Config{}, func(cfg comm.Config) []error {
			return overHosts(t, []int32{0, 0, 1, 1}, cfg, barrier)
		}, []string{"4 ranks of 2 hosts", "barrier 0-: hier: leader", "scan 0-: messages: "}, []string{"shm"}},
		{"on two hosts, tuned", comm.Config{Tuning: "bcast:1k-2k:chain;hier.chunk=64k"}, func(cfg comm.Config) []error {
			return overHosts(t, []int32{0, 0, 1, 1}, cfg, barrier)
		}, []string{"bcast 0-: hier: leader in 64 KiB", "bcast 1k-: messages: chain", "bcast 2k-: hier: leader"}, nil},
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
