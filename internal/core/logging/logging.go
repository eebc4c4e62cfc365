// Package logging has the logger that GOMPI_LOG asks for.
package logging

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
)

// The parts that log under a name of their own: as the attribute Part.
const (
	Part   = "part"
	Tuning = "tuning" // how collectives are done
	TCP    = "tcp"    // connections
	UCX    = "ucx"    // connections and devices
)

var levels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn}

// New returns the logger that GOMPI_LOG asks for: nothing, or a list of
// levels, for everything, of parts, and of parts with a level: "warn,tuning",
// "tcp=debug".
func New(spec string, w io.Writer) (*slog.Logger, error) {
	if spec == "" {
		return slog.New(slog.DiscardHandler), nil
	}
	h := partHandler{Handler: slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}), least: map[string]slog.Level{}}
	for item := range strings.SplitSeq(strings.ToLower(spec), ",") {
		part, name, found := strings.Cut(item, "=")
		if !found {
			name = "info"
		}
		known := part == Tuning || part == TCP || part == UCX
		if _, ok := levels[item]; ok {
			part, name, known = "", item, true
		}
		level, ok := levels[name]
		if !ok || !known {
			return nil, fmt.Errorf("GOMPI_LOG=%q: %q: want %s, %s, %s or %s, or a part=level", spec, item,
				strings.Join(slices.Sorted(maps.Keys(levels)), ", "), Tuning, TCP, UCX)
		}
		h.least[part] = level
	}
	return slog.New(h), nil
}

// A partHandler drops what was not asked for. A Logger belongs to the part that
// its attribute "part" names, or to none.
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
		if a.Key == Part {
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
