package env

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestLogPrintsWhatItIsAskedFor(t *testing.T) {
	lines := func(l *slog.Logger) {
		l.Debug("plain debug")
		l.Info("plain info")
		l.Warn("plain warning")
		l.With(LogPart, LogTuning).Info("a table")
		l.With(LogPart, LogTCP).With("peer", 3).Debug("a connection")
		l.WithGroup("g").Info("grouped", "x", 1)
	}
	all := []string{"plain debug", "plain info", "plain warning", "a table", "a connection", "grouped"}
	for spec, want := range map[string]string{
		"":                  "",
		"debug":             "plain debug,plain info,plain warning,a table,a connection,grouped",
		"info":              "plain info,plain warning,a table,grouped",
		"WARN":              "plain warning",
		"tuning":            "a table",
		"tcp=debug":         "a connection",
		"tcp":               "",
		"warn,tuning":       "plain warning,a table",
		"debug,tuning=warn": "plain debug,plain info,plain warning,a connection,grouped",
	} {
		var out bytes.Buffer
		l, err := NewLogger(spec, &out)
		if err != nil {
			t.Errorf("%q: %v", spec, err)
			continue
		}
		lines(l)
		var got []string
		for _, s := range all {
			if strings.Contains(out.String(), s) {
				got = append(got, s)
			}
		}
		if strings.Join(got, ",") != want {
			t.Errorf("%q: got %q, want %q", spec, got, want)
		}
	}
}

func TestLogRefusesWhatItDoesNotKnow(t *testing.T) {
	for spec, bad := range map[string]string{
		"chatty": `"chatty"`, "info,": `""`, "tcp=loud": `"tcp=loud"`, "rdma=debug": `"rdma=debug"`,
		"warn,tunning": `"tunning"`,
	} {
		_, err := NewLogger(spec, nil)
		if err == nil || !strings.Contains(err.Error(), bad) || !strings.Contains(err.Error(), "GOMPI_LOG=") {
			t.Errorf("%q: got %v, want an error that quotes %s", spec, err, bad)
		}
	}
}
