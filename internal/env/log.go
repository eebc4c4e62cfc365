package env

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
)

// The parts that log under a name of their own: as the attribute LogPart.
const (
	LogPart   = "part"
	LogTuning = "tuning" // how collectives are done
	LogTCP    = "tcp"    // connections
	LogUCX    = "ucx"    // connections and devices
)

var levels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn,
}

// NewLogger returns the logger that a value of GOMPI_LOG asks for: nothing, or a list of levels, of
// parts, and of parts with a level: "warn,tuning", "tcp=debug". A level alone is for everything.
func NewLogger(spec string, w io.Writer) (*slog.Logger, error) {
	if spec == "" {
		return slog.New(slog.DiscardHandler), nil
	}
	all := slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})
	h := partHandler{Handler: all, least: map[string]slog.Level{}}
	for item := range strings.SplitSeq(strings.ToLower(spec), ",") {
		part, name, found := strings.Cut(item, "=")
		if !found {
			name = "info"
		}
		known := part == LogTuning || part == LogTCP || part == LogUCX
		if _, ok := levels[item]; ok {
			part, name, known = "", item, true
		}
		level, ok := levels[name]
		if !ok || !known {
			return nil, fmt.Errorf("GOMPI_LOG=%q: %q: want %s, %s, %s or %s, or a part=level", spec, item,
				strings.Join(slices.Sorted(maps.Keys(levels)), ", "), LogTuning, LogTCP, LogUCX)
		}
		h.least[part] = level
	}
	return slog.New(h), nil
}

// A partHandler drops lines that GOMPI_LOG does not ask for. A Logger belongs to the part that its
// attribute "part" names, or to none.
type partHandler struct {
	slog.Handler
	least map[string]slog.Level // by part; "" for all others
	part  string
}

// Enabled implements slog.Handler.
func (h partHandler) Enabled(_ context.Context, l slog.Level) bool {
	level, ok := h.least[h.part]
	if !ok {
		level, ok = h.least[""]
	}
	return ok && l >= level
}

// WithAttrs implements slog.Handler.
func (h partHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		if a.Key == LogPart {
			h.part = a.Value.String()
		}
	}
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

// WithGroup implements slog.Handler.
func (h partHandler) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}
