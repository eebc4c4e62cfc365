package comm

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
)

// The parts that log under a name of their own.
const (
	partTuning = "tuning" // how collectives are done
	partTCP    = "tcp"    // connections
)

var logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn}

// newLogger returns the logger that GOMPI_LOG asks for: nothing, or a list of
// levels, for everything, of parts, and of parts with a level: "warn,tuning",
// "tcp=debug".
func newLogger(spec string, w io.Writer) (*slog.Logger, error) {
	if spec == "" {
		return slog.New(slog.DiscardHandler), nil
	}
	h := partHandler{Handler: slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}), levels: map[string]slog.Level{}}
	for item := range strings.SplitSeq(strings.ToLower(spec), ",") {
		part, name, found := strings.Cut(item, "=")
		if !found {
			name = "info"
		}
		known := part == partTuning || part == partTCP
		if _, ok := logLevels[item]; ok {
			part, name, known = "", item, true
		}
		level, ok := logLevels[name]
		if !ok || !known {
			return nil, fmt.Errorf("GOMPI_LOG=%q: %q: want %s, %s or %s, or a part=level", spec, item,
				strings.Join(slices.Sorted(maps.Keys(logLevels)), ", "), partTuning, partTCP)
		}
		h.levels[part] = level
	}
	return slog.New(h), nil
}

// A partHandler drops what was not asked for. A Logger belongs to the part that
// its attribute "part" names, or to none.
type partHandler struct {
	slog.Handler
	levels map[string]slog.Level // by part; "" for all others
	part   string
}

// Enabled implements slog.Handler.
func (h partHandler) Enabled(_ context.Context, l slog.Level) bool {
	least, ok := h.levels[h.part]
	if !ok {
		least, ok = h.levels[""]
	}
	return ok && l >= least
}

// WithAttrs implements slog.Handler.
func (h partHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		if a.Key == "part" {
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

// logWays logs what the collectives of c go through, and by which algorithms, a line for
// each.
func (c *Comm) logWays(ctx context.Context) {
	l := c.log.With("part", partTuning)
	if !l.Enabled(ctx, slog.LevelInfo) {
		return
	}
	for line := range strings.Lines(c.ways()) {
		l.Info(strings.TrimSpace(line))
	}
}

// ways says how the collectives of c are done, in a line for each and the bytes from which on.
func (c *Comm) ways() string {
	return fmt.Sprintf("%d ranks of %d hosts: from so many bytes, of the vector or of one rank's block, collectives go through\n%s",
		c.Size(), len(c.hosts()), c.paths.Describe())
}
