package contest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gompi/bench/report"
)

// fake returns an entrant whose launcher is a shell script. The script sees the
// number of ranks as $1, and the operation as the last of its arguments.
func fake(t *testing.T, name, script string) Entrant {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return Entrant{
		Name: name, launcher: path, program: []string{"bench"},
		place: func(np, _ int) []string { return []string{fmt.Sprint(np)} },
	}
}

const says = `for op; do :; done
echo ` + report.Header + `
echo whoever,$op,$1,8,1,1,1,5,1,0,0
`

// still is the Probe of a machine that stays as it is.
func still() Probe { return Probe{Nanoseconds: 50} }

func TestRoundsAreInterleaved(t *testing.T) {
	quick := says + "echo whoever,$op,$1,16,1,1,1,5,1,0,0\n"
	slow := fake(t, "slow", "echo "+report.Header+"\nshift; for op; do [ $op = bench ] || echo x,$op,3,8,1,1,1,5,1,0,0; done\n")
	slow.slow, slow.lacks = true, []string{"scan"}
	entrants := []Entrant{slow, fake(t, "a", quick), fake(t, "b", says)}
	var got []string
	p := Plan{Rounds: 2, NPs: []int{3, 4}, Ops: []string{"bcast", "scan"}, Limit: time.Minute, Probe: still}
	p.Yardstick = func(op string, np int) []report.Row { return []report.Row{{Impl: report.Limit, Op: op, NP: np}} }
	err := p.Run(t.Context(), entrants, func(s report.Sample) error {
		if want := map[bool]string{true: report.AnyState, false: Near}[s.Impl == "slow"]; s.State != want {
			t.Errorf("%+v: want the state %s", s, want)
		}
		if s.Bytes != 16 && (s.Impl != "slow" || s.NP == 3) { // the slow one says 3 whatever it is asked for
			got = append(got, fmt.Sprintf("%d %s %s %d", s.Round, s.Op, s.Impl, s.NP))
		}
		return nil
	}, func(m Miss) { t.Error(m) })
	want := []string{
		"1 bcast limit 3", "1 bcast a 3", "1 bcast b 3", "1 scan limit 3", "1 scan a 3", "1 scan b 3", "1 bcast slow 3",
		"1 bcast limit 4", "1 bcast a 4", "1 bcast b 4", "1 scan limit 4", "1 scan a 4", "1 scan b 4", "1 bcast slow 3",
		"2 bcast limit 3", "2 bcast a 3", "2 bcast b 3", "2 scan limit 3", "2 scan a 3", "2 scan b 3", "2 bcast slow 3",
		"2 bcast limit 4", "2 bcast a 4", "2 bcast b 4", "2 scan limit 4", "2 scan a 4", "2 scan b 4", "2 bcast slow 3",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("error %v, got\n%s\nwant\n%s", err, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestSamplesCarryTheStateBetweenTwoProbes(t *testing.T) {
	probes := []float64{50, 60, 50, 245, 245, 9e5}
	next := 0
	p := Plan{Rounds: 3, NPs: []int{2}, Ops: []string{"bcast"}, Limit: time.Minute, Probe: func() Probe {
		next++
		return Probe{Nanoseconds: probes[next-1]}
	}}
	var got []string
	err := p.Run(t.Context(), []Entrant{fake(t, "a", says)}, func(s report.Sample) error {
		got = append(got, s.State)
		return nil
	}, func(m Miss) { t.Error(m) })
	if want := []string{Near, Moved, Moved}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, error %v; want %v", got, err, want)
	}
	for ns, want := range map[float64]string{50: Near, 245: Far, 9e5: Busy} {
		if got := Between(Probe{Nanoseconds: ns}, Probe{Nanoseconds: ns}); got != want {
			t.Errorf("between two probes of %v ns: %s, want %s", ns, got, want)
		}
	}
	if got := Between(Probe{Err: errors.New("one processor")}, Probe{Err: errors.New("one processor")}); got != Unknown {
		t.Errorf("without probes: %s, want %s", got, Unknown)
	}
}

func TestAMissNamesTheOperationThatItCameTo(t *testing.T) {
	e := fake(t, "gloo", "echo "+report.Header+"\necho x,bcast_dirty,2,8,1,1,1,5,1,0,0\necho x,reduce_dirty,2,8,1,1,1,5,1,0,0\nexit 1\n")
	e.slow = true
	p := Plan{Rounds: 1, NPs: []int{2}, Ops: []string{"bcast", "reduce", "scan"}, Limit: time.Minute, Probe: still}
	var got string
	err := p.Run(t.Context(), []Entrant{e}, func(report.Sample) error { return nil }, func(m Miss) { got = m.String() })
	if want := "gloo, reduce, np=2, round 1: exit status 1"; err != nil || got != want {
		t.Errorf("got %q, error %v; want %q", got, err, want)
	}
}

func TestAnEntrantThatFailsIsAMissAndKeepsItsRows(t *testing.T) {
	entrants := []Entrant{
		fake(t, "dies", says+"echo the reason >&2; exit 1\n"),
		fake(t, "hangs", says+"exec sleep 1000\n"),
		fake(t, "babbles", "echo hello\n"),
		fake(t, "works", says),
	}
	var rows, misses []string
	p := Plan{Rounds: 1, NPs: []int{2}, Ops: []string{"bcast"}, Limit: 15 * time.Second, Probe: still}
	err := p.Run(t.Context(), entrants, func(s report.Sample) error {
		rows = append(rows, s.Impl)
		return nil
	}, func(m Miss) { misses = append(misses, m.String()) })
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"dies", "hangs", "works"}; !slices.Equal(rows, want) {
		t.Errorf("rows of %v, want %v", rows, want)
	}
	want := []string{
		"dies, bcast, np=2, round 1: exit status 1: the reason",
		"hangs, bcast, np=2, round 1: time limit of 15s",
		`babbles, bcast, np=2, round 1: header "hello": want ` + report.Header,
	}
	if !slices.Equal(misses, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(misses, "\n"), strings.Join(want, "\n"))
	}
}

func TestAnInterruptEndsTheRounds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := Plan{Rounds: 100, NPs: []int{2}, Ops: []string{"bcast"}, Limit: time.Minute, Probe: still}
	runs := 0
	err := p.Run(ctx, []Entrant{fake(t, "a", says)}, func(report.Sample) error {
		runs++
		cancel()
		return nil
	}, func(m Miss) { t.Error(m) })
	if err == nil || runs != 1 {
		t.Errorf("%d runs, error %v; want an end after the first", runs, err)
	}
}

func TestNumbers(t *testing.T) {
	if got, err := Numbers("-np", "1,4,16"); err != nil || !slices.Equal(got, []int{1, 4, 16}) {
		t.Errorf("got %v, %v; want 1, 4 and 16", got, err)
	}
	for _, list := range []string{"", "1,", "0", "4,-1", "1;2"} {
		if got, err := Numbers("-np", list); err == nil {
			t.Errorf("%q is read as %v", list, got)
		}
	}
}

func TestFind(t *testing.T) {
	found, rest, err := Find([]string{"mpich-tcp", "gloo", "openmpi-tcp"}, "ucx", "gloo")
	if err != nil || len(found) != 2 || found[0].Name != "mpich-tcp" || found[1].Name != "openmpi-tcp" || !slices.Equal(rest, []string{"gloo"}) {
		t.Errorf("got %v, %v and %v, want both in the order asked for, and gloo", found, rest, err)
	}
	for _, tt := range []struct {
		names []string
		want  string
	}{
		{[]string{"mvapich"}, `peer "mvapich": want some of openmpi-tcp,openmpi,openmpi-xhc,openmpi-acoll,openmpi-ob1,mpich-tcp,mpich,openmpi-hosts,mpich-hosts,srun,gloo`},
		{[]string{"mpich", "mpich"}, `peer "mpich" is named twice`},
		{[]string{"gloo", "mpich", "gloo"}, `peer "gloo" is named twice`},
	} {
		if _, _, err := Find(tt.names, "gloo"); err == nil || err.Error() != tt.want {
			t.Errorf("%v: %v, want %s", tt.names, err, tt.want)
		}
	}
}

func TestCommandsBindOnlyIfThereAreProcessors(t *testing.T) {
	for _, tt := range []struct {
		name string
		np   int
		want string
	}{
		{"openmpi-tcp", 2, "PMIX_MCA_psec=native mpirun --allow-run-as-root -np 2 --bind-to core --mca pml ob1 --mca btl tcp,self mpibench -impl x bcast"},
		{"openmpi-tcp", 3, "PMIX_MCA_psec=native mpirun --allow-run-as-root -np 3 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 --mca pml ob1 --mca btl tcp,self mpibench -impl x bcast"},
		{"mpich-tcp", 2, "MPIR_CVAR_NOLOCAL=1 UCX_TLS=tcp,self UCX_NET_DEVICES=lo mpirun -np 2 -bind-to core mpibench -impl x bcast"},
		{"mpich", 3, "mpirun -np 3 mpibench -impl x bcast"},
	} {
		found, _, err := Find([]string{tt.name})
		if err != nil {
			t.Fatal(err)
		}
		c := found[0]
		e := Entrant{launcher: "mpirun", place: c.Library.Place, flags: c.Flags, program: []string{"mpibench"}, env: c.Env}
		e = e.WithArgs("-impl", "x")
		if got := e.Command(tt.np, 2, "bcast").String(); got != tt.want {
			t.Errorf("%s: got  %s\nwant %s", tt.name, got, tt.want)
		}
	}
	gompi := Gompi("gompirun", "hello", "A=1")
	if got, want := gompi.Command(64, 2).String(), "A=1 gompirun -np 64 hello"; got != want {
		t.Errorf("gompi: got %s, want %s", got, want)
	}
	if got, want := gompi.Apart().Command(2, 2).String(), "A=1 gompirun -np 2 -H 127.0.0.1,127.0.0.2 hello"; got != want {
		t.Errorf("gompi, each rank on a host of its own: got %s, want %s", got, want)
	}
}

func TestALibraryThatIsNotHereNamesItsPackages(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	shop, err := NewWorkshop()
	if err != nil {
		t.Fatal(err)
	}
	defer shop.Close()
	_, err = shop.Enter(t.Context(), Competitors()[0], "mpibench")
	if want := "not installed (Debian: apt-get install openmpi-bin libopenmpi-dev)"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestACompetitorMadeOfAComponentIsHereOnlyIfThatIs(t *testing.T) {
	dir := t.TempDir()
	info := "#!/bin/sh\necho '                MCA coll: xhc (MCA v2.1.0, API v2.4.0, Component v5.1.0)'\n"
	if err := os.WriteFile(filepath.Join(dir, "ompi_info"), []byte(info), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/bin")
	for component, want := range map[string]string{"": "", "xhc": "", "acoll": "this Open MPI has no component coll/acoll", "xh": "this Open MPI has no component coll/xh"} {
		got := ""
		if err := (Competitor{Component: component}).hasComponent(t.Context()); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("component %q: %q, want %q", component, got, want)
		}
	}
}

func TestALauncherOfAnotherLibraryIsNotTaken(t *testing.T) {
	dir := t.TempDir()
	for name, script := range map[string]string{"mpirun": "echo 'HYDRA build details: Version: 4.0.2'", "mpicc": "exit 0"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":/bin:/usr/sbin")
	for _, tt := range []struct {
		library Library
		want    string
	}{{openMPI(), ""}, {mpich(), "4.0.2"}} {
		tt.library.Tools = tt.library.Tools[len(tt.library.Tools)-1:] // the names without a suffix
		_, version, err := locate(t.Context(), tt.library)
		if version != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: version %q, error %v; want %q", tt.library.Name, version, err, tt.want)
		}
	}
}

func TestProbeTellsStates(t *testing.T) {
	for ns, want := range map[float64]string{52: "52 ns (near)", 245: "245 ns (far)", 4e6: "4000000 ns (the machine is busy)"} {
		if got := (Probe{Nanoseconds: ns}).String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	took, ok := bounce(time.Now().Add(-time.Second))
	if ok {
		t.Errorf("a probe after its deadline took %v, want none", took)
	}
}

// TestPeersDeliverWhatTheyShould runs the C programs, where a library is here.
func TestPeersDeliverWhatTheyShould(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles and starts MPI programs")
	}
	shop, err := NewWorkshop()
	if err != nil {
		t.Fatal(err)
	}
	defer shop.Close()
	for _, c := range []Competitor{{Name: "openmpi", Library: openMPI()}, {Name: "mpich", Library: mpich()}} {
		t.Run(c.Name, func(t *testing.T) {
			if _, _, err := locate(t.Context(), c.Library); err != nil {
				t.Skip(err)
			}
			e, err := shop.Enter(t.Context(), c, "mpibench")
			if err != nil {
				t.Fatal(err)
			}
			out, err := e.Command(1, 2, "-impl", c.Name, "-budget", "1ms", "-dirty", "-sizes", "0,8,8184", "-type", "float64", "allreduce", "alltoall", "barrier", "skew").Run(t.Context(), time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			rows, err := report.ReadCSV(strings.NewReader(string(out.Stdout)))
			if err != nil || len(rows) != 8 || rows[6].Op != "barrier_dirty" || rows[5].Bytes != 8184 || rows[0].Impl != c.Name || rows[7].Median != 0 {
				t.Errorf("rows %v, error %v: want three of allreduce, three of alltoall, one of barrier and one of the skew of one rank, 0", rows, err)
			}
		})
	}
}

// TestUCXDeliversWhatItShould runs the C program over UCX, where its headers are.
func TestUCXDeliversWhatItShould(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles and starts a program")
	}
	shop, err := NewWorkshop()
	if err != nil {
		t.Fatal(err)
	}
	defer shop.Close()
	for _, transports := range []string{"tcp", "posix,cma"} {
		e, err := shop.UCX(t.Context(), transports)
		if errors.Is(err, errNoUCX) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		command := func(np int, ops ...string) Command {
			args := []string{"-format", "csv", "-type", "float32", "-redop", "sum", "-budget", "1ms"}
			return e.Command(np, 2, slices.Concat(args, []string{"-sizes", "0,8,8184,1M"}, ops)...)
		}
		out, err := command(2, e.can([]string{"latency", "bw", "bcast"})...).Run(t.Context(), time.Minute)
		if err != nil {
			t.Fatalf("%s: %v", transports, err)
		}
		rows, err := report.ReadCSV(strings.NewReader(string(out.Stdout)))
		if err != nil || len(rows) != 8 {
			t.Fatalf("%s: %d rows, error %v; want four of latency and four of bw", transports, len(rows), err)
		}
		for i, r := range rows {
			op, bytes := []string{"latency", "bw"}[i/4], []int{0, 8, 8184, 1 << 20}[i%4]
			timed := r.Iters >= 5 && r.Median > 0 && r.B2B > 0
			if r.Impl != "ucx" || r.Op != op || r.NP != 2 || r.Bytes != bytes || !timed {
				t.Errorf("%s: row %+v: want times of %s of %d bytes", transports, r, op, bytes)
			}
		}
		for _, wrong := range []Command{command(3, "bw"), command(2, "bcast")} {
			_, err := wrong.Run(t.Context(), time.Minute)
			if err == nil || !strings.Contains(err.Error(), "ucxbench: want ") {
				t.Errorf("%v: %v, want an error that says what it can", wrong, err)
			}
		}
	}
}

// TestGlooDeliversWhatItShould runs the Python program, where there is PyTorch.
func TestGlooDeliversWhatItShould(t *testing.T) {
	if testing.Short() {
		t.Skip("starts PyTorch")
	}
	shop, err := NewWorkshop()
	if err != nil {
		t.Fatal(err)
	}
	defer shop.Close()
	torch, err := shop.Torch(t.Context())
	if err != nil {
		t.Skip(err)
	}
	e := torch.Gloo("unused")
	ranks := make(Job, 2)
	port := nextPort()
	ops := []string{"latency", "bw", "barrier", "skew", "bcast", "reduce", "allreduce", "allgather", "gather", "scatter", "alltoall"}
	for rank := range ranks {
		args := append(slices.Concat(e.program, []string{"-format", "csv", "-budget", "1ms", "-sizes", "8,4084,8184"}), ops...)
		ranks[rank] = Command{Args: args, Env: []string{
			"MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port, "WORLD_SIZE=2", fmt.Sprintf("RANK=%d", rank),
		}}
	}
	out, err := ranks.Run(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := report.ReadCSV(strings.NewReader(string(out.Stdout)))
	if want := 2 + 3*(len(ops)-2); err != nil || len(rows) != want {
		t.Fatalf("%d rows, error %v; want %d", len(rows), err, want)
	}
	for _, r := range rows {
		if r.Impl != "gloo" || r.NP != 2 || r.Iters < 5 || r.Median <= 0 {
			t.Errorf("row %+v: want times of two ranks", r)
		}
	}
}
