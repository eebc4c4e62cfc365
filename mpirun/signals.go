package mpirun

import (
	"os"
	"os/signal"
	"syscall"
)

// Signals that end the job, and signals that are forwarded to the ranks. QUIT asks what the ranks
// are doing.
var (
	endJob   = [...]os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}
	handedOn = [...]os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGWINCH, syscall.SIGCONT,
		syscall.SIGTSTP, syscall.SIGQUIT}
)

// catch begins to catch the signals of the job, except those that were ignored when gompirun
// started: nohup and shells without job control rely on that. The first process of a container does
// not catch TSTP: it cannot stop itself.
func catch() chan os.Signal {
	signals := make(chan os.Signal, 16)
	for _, list := range [][]os.Signal{endJob[:], handedOn[:]} {
		for _, sig := range list {
			if !signal.Ignored(sig) && (sig != syscall.SIGTSTP || os.Getpid() != 1) {
				signal.Notify(signals, sig)
			}
		}
	}
	return signals
}

// stop stops this process, as the terminal has asked, until it is continued. A thread may run on
// for a while after it has sent the signal that stops all threads.
func stop() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
	<-continued
}
