package comm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// Run is the main of a rank: Run calls Init, f with the world, and Close. If all end well, Run
// returns. Else it prints the error on standard error, with the program and the rank, and ends the
// process with status 1, without Close: gompirun then ends the job. The context of f ends at SIGINT
// and SIGTERM, for whose first arrival Run installs a handler; the context of Close does not, and a
// second signal ends the process. A panic of f is not recovered.
func Run(f func(ctx context.Context, c *Comm) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process
	defer stop()
	if err := run(ctx, f); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(1)
	}
}

// run returns errors that name the rank.
func run(ctx context.Context, f func(ctx context.Context, c *Comm) error) error {
	c, err := Init(ctx)
	if err != nil {
		return err
	}
	if err = f(ctx, c); err == nil {
		err = c.Close(context.WithoutCancel(ctx)) // f has ended well, if at a signal
	}
	if named := (*Error)(nil); err == nil || errors.As(err, &named) {
		return err
	}
	return fmt.Errorf("rank %d: %w", c.Rank(), err)
}
