package job

import (
	"context"
	"fmt"
	"time"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/inventory"
)

// progressTime is the time until the user is first notified of missing hosts.
const progressTime = 5 * time.Second

// startAgents starts one agent on each host, all at once, and waits for the facts of all hosts.
// Failing hosts are reported together. startAgents also returns, without error, when the job is
// about to end.
func (j *Job) startAgents() error {
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	limit := j.spec.Reach.Limit()
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no agent after %v (-start-timeout)", limit))
	defer cancel()
	b := &inventory.Beginning{GPUs: j.wantsGPUs(), Limit: limit, Stop: stop, Verbose: j.verbosef, Found: j.reportGPUs,
		Other: func(e *inventory.Entry, m ctl.Message) { j.note(j.hosts[e.Index], m) }}
	agents, send := j.system.Connect(limited, j.Hosts, j.events, j.done)
	j.send = send
	for i, h := range j.Hosts {
		j.hosts = append(j.hosts, &host{Entry: inventory.Entry{Index: i, Host: h.Name, Agent: agents[i]}})
	}
	b.Hosts = entries(j.hosts)
	b.Begin()
	defer b.Late.Stop()
	progress := time.NewTicker(progressTime)
	defer progress.Stop()
	for b.Waiting > 0 && j.end.cause == nil {
		select {
		case e := <-j.events:
			b.Handle(e)
		case s := <-j.signals:
			j.signalled(s)
		case q := <-j.system.Questions:
			j.askedFor(q)
		case <-b.Late.C:
			b.GiveUp()
		case <-progress.C:
			j.notef("%d of %d agents are up, waiting for %s", len(j.hosts)-b.Waiting, len(j.hosts), b.Missing())
			progress.Reset(2 * progressTime)
		case <-j.timer:
			j.timeUp(" while waiting for " + b.Missing())
		case <-j.end.looks:
			j.giveUpReader()
		}
	}
	return b.Failures()
}
