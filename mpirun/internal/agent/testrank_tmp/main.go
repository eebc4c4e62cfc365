package main

import (
	"context"
	"fmt"
	"os"

	"gompi/internal/boot"
)

func main() {
	b, err := boot.Open()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	cards, err := b.Allgather(context.Background(), fmt.Appendf(nil, "card %d of %d bytes ...............", b.Info().Rank, os.Getpid()))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if len(os.Args) > 1 {
		fmt.Println(b.Info().Rank, len(cards), b.Info().Hosts, b.Info().NodeOf, string(cards[0]))
	}
	b.Goodbye()
}
