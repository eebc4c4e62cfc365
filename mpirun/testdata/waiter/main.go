// Command waiter joins its job, prints its rank and process, and waits in await until USR1. Tests
// attach debuggers to it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"gompi/comm"
)

func main() {
	ctx := context.Background()
	c, err := comm.Init(ctx)
	if err == nil {
		fmt.Printf("rank %d is process %d\n", c.Rank(), os.Getpid())
		await()
		err = comm.Barrier(ctx, c)
	}
	if err == nil {
		err = c.Close(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "waiter:", err)
		os.Exit(1)
	}
}

//go:noinline
func await() {
	usr := make(chan os.Signal, 1)
	signal.Notify(usr, syscall.SIGUSR1)
	<-usr
}
