package boot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"gompi/internal/boot/pmi"
	"gompi/internal/boot/pmix"
	"gompi/internal/boot/rank0"
	"gompi/internal/env"
)

// Open finds out how this process was started and joins its job. Open joins through the agent of
// gompirun, or over PMI-1, PMIx or a shared folder, if another launcher started several processes.
// Without a visible launcher, and for the child of a rank that has joined, Open starts a job of one
// rank. A process joins once. Without an agent, Open waits until all ranks have joined.
//
// If the ranks cannot meet, Open fails. Otherwise each of them would be rank 0 of 1, and the job
// would silently compute something else.
func Open(ctx context.Context) (Boot, error) {
	switch how := env.String(env.Boot); how {
	case "":
	case "alone":
		return Alone(), nil
	default:
		return nil, fmt.Errorf("%s=%q: want alone, or unset", env.Boot, how)
	}
	if os.Getenv(env.BootFD) != "" || os.Getenv(env.BootAddr) != "" {
		b, err := openAgent()
		if errors.Is(err, errChild) {
			return Alone(), nil
		}
		return b, err
	}
	p, err := find(os.Getenv)
	switch {
	case err != nil:
		return nil, err
	case p != nil && p.launcher.size == env.Size:
		if addr := parentsAgent(); addr != "" {
			return child(addr), nil
		}
		return nil, errNoRank
	case pmi.Visible() && os.Getenv(pmi.EnvSize) != "1":
		return openPMI(ctx)
	case p == nil:
		if err := lostVariables(); err != nil {
			return nil, err
		}
		if pmix.Visible(os.Getenv) {
			return openPMIx(ctx, nil)
		}
		return Alone(), nil
	}
	b, err := p.open(ctx)
	if err == nil && p.program > 0 { // PMIx, too, has a number
		b.Info().Program = p.program
	}
	return b, err
}

// Alone returns a job of one rank.
func Alone() Boot {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return &newGroup(1, host).members[0]
}

// open joins the job of a launcher that gives each process only its number.
func (p *place) open(ctx context.Context) (Boot, error) {
	if at := os.Getenv(env.Rendezvous); at != "" {
		dir, ok := strings.CutPrefix(at, "file://")
		if !ok || !strings.HasPrefix(dir, "/") {
			return nil, fmt.Errorf("%s=%q: want file:// and the path of a folder that all hosts share, as in file:///home/me", env.Rendezvous, at)
		}
		return openFile(ctx, p, dir)
	}
	if token := os.Getenv(env.Token); token != "" && os.Getenv(env.TorchMasterAddr) != "" {
		return openMaster(ctx, p, token)
	}
	if !p.local || p.job == "" {
		if os.Getenv(pmix.EnvRank) == strconv.Itoa(p.rank) && os.Getenv(pmix.EnvJob) != "" {
			return openPMIx(ctx, p)
		}
		return nil, p.refusal()
	}
	dir, err := rank0.PrivateDir()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", p.refusal(), err)
	}
	return openFile(ctx, p, dir)
}

// refusal is the error of ranks that cannot meet. Only rank 0's error names the remedy.
func (p *place) refusal() error {
	if p.rank > 0 {
		return fmt.Errorf("rank %d of %d, started by %s, cannot reach the others: see the error of rank 0 (if none was started, and %s is left over: unset it, or set %s=alone)",
			p.rank, p.size, p.name, p.launcher.rank, env.Boot)
	}
	return fmt.Errorf("started by %s as one of %d processes, which have no way to meet: each would be rank 0 of 1, %d times; set %s to file:// and a folder that all hosts share, or start it so: %s",
		p.name, p.size, p.size, env.Rendezvous, p.startLines(fmt.Sprint(p.size)))
}

// startLines returns the lines that start this program with n ranks that can meet. p may be nil.
func (p *place) startLines(n string) string {
	own := fmt.Sprintf("gompirun -np %s %s", n, strings.Join(os.Args, " "))
	if p != nil && p.hint != "" {
		return p.hint + ", or " + own
	}
	return own
}

// errNoRank is for ranks whose wrapper removed variables.
var errNoRank = errors.New("started by gompirun (" + env.Size + " is set) but not as a rank: " +
	env.BootFD + " and " + env.BootAddr + " are missing, which a wrapper must have removed; " +
	"have all variables that begin with GOMPI_ passed on, or set " + env.Boot + "=alone to run it as a job of one rank")
