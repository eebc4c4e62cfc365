package comm

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// newLogger returns the logger that GOMPI_LOG asks for: nothing, "info",
// "debug", or "tuning" for the algorithms in force alone.
func newLogger(spec string, w io.Writer) (*slog.Logger, error) {
	switch strings.ToLower(spec) {
	case "":
		return slog.New(slog.DiscardHandler), nil
	case "tuning", "info":
		return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelInfo})), nil
	case "debug":
		return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})), nil
	case "warn":
		return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn})), nil
	}
	return nil, fmt.Errorf("GOMPI_LOG=%q: want warn, info, tuning or debug", spec)
}
