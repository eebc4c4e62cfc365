package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"gompi/bench/internal/measure"
	"gompi/bench/report"
	"gompi/comm"
	"gompi/cudaops"
	"gompi/internal/env"
)

// run returns the exit status: 0, 1 after an error, 2 if the arguments make no
// sense. What all ranks would say alike only rank 0 says.
func run(args []string, stdout, stderr io.Writer) int {
	cfg, wrong := parse(args)
	if cfg.set.Answer(wrong, usage()+cfg.set.FlagUsages(), stdout) {
		return 0
	}
	if cfg.profile && wrong == nil {
		if err := profile(stdout); err != nil {
			fmt.Fprintf(stderr, "gompi-bench: %v\n", err)
			return 1
		}
		return 0
	}
	ctx := context.Background() // gompirun ends the job; comm ends it if a rank dies
	c, err := comm.Init(ctx)
	if err != nil {
		fmt.Fprintf(stderr, "gompi-bench: %v\n", err)
		return 1
	}
	if wrong == nil {
		wrong = cfg.Validate(c.Size())
	}
	if wrong != nil {
		return refuse(ctx, c, wrong, stderr)
	}
	out := stdout
	if c.Rank() != 0 {
		out = io.Discard
	}
	if err := bench(ctx, c, cfg, out); err != nil {
		fmt.Fprintf(stderr, "gompi-bench: %v\n", err)
		return 1
	}
	return 0
}

// refuse leaves the job in good order; rank 0 says why.
func refuse(ctx context.Context, c *comm.Comm, why error, stderr io.Writer) int {
	if err := c.Close(ctx); err != nil {
		why = errors.Join(why, err)
	}
	if c.Rank() != 0 {
		return 0
	}
	fmt.Fprintf(stderr, "gompi-bench: %v\n", why)
	return 2
}

// localDevice returns the GPU of this rank: ranks of a host take them in turn.
func localDevice() (*cudaops.Device, error) {
	devices, err := cudaops.Devices()
	if err != nil {
		return nil, err
	}
	local, err := env.Int(env.LocalRank)
	if err != nil {
		return nil, err
	}
	return devices[local%len(devices)], nil
}

// bench measures and writes, and leaves the job.
func bench(ctx context.Context, c *comm.Comm, cfg config, out io.Writer) error {
	w, err := report.NewWriter(out, cfg.format)
	if err != nil {
		return err
	}
	if cfg.memory == "cuda" {
		device, err := localDevice()
		if err != nil {
			return err
		}
		stream, err := device.NewStream()
		if err != nil {
			return err
		}
		defer stream.Close()
		cfg.Space, cfg.Stream = device, stream
	}
	if err := measure.Run(ctx, c, cfg.Options, w.Write); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return c.Close(ctx)
}
