package peers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gompi/bench/internal/result"
	"gompi/bench/internal/runner"
	"gompi/internal/stress"
)

// opened returns a Bench whose folder of make peers has launchers and compilers that are scripts.
func opened(t *testing.T) *Bench {
	t.Helper()
	b := &Bench{Gompirun: "gompirun", Venvs: t.TempDir()}
	if err := b.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	script := "#!/bin/sh\necho 'mpirun (Open MPI) 5.0.11'\n"
	for _, name := range []string{"openmpi/bin/mpirun", "openmpi/bin/mpicc", "mpich/bin/mpirun", "mpich/bin/mpicc",
		"impi/bin/mpirun", "impi/bin/mpigcc"} {
		path := filepath.Join(b.Venvs, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func TestPeersAreStartedAsTheirSettingsSay(t *testing.T) {
	processors = 2
	b := opened(t)
	hello := Program{C: "mpihello.c", Args: []string{"-x"}}
	for _, tt := range []struct {
		name, transport string
		np              int
		want            string
	}{
		{"openmpi", "", 2, "PMIX_MCA_psec=native VENV/openmpi/bin/mpirun --allow-run-as-root -np 2 --bind-to core DIR/mpihello.openmpi -x bcast"},
		{"openmpi", "tcp", 3, "PMIX_MCA_psec=native OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self VENV/openmpi/bin/mpirun --allow-run-as-root -np 3 --map-by slot:OVERSUBSCRIBE --bind-to none --mca mpi_yield_when_idle 1 DIR/mpihello.openmpi -x bcast"},
		{"openmpi-ob1", "", 2, "PMIX_MCA_psec=native OMPI_MCA_pml=ob1 VENV/openmpi/bin/mpirun --allow-run-as-root -np 2 --bind-to core DIR/mpihello.openmpi-ob1 -x bcast"},
		{"mpich", "tcp", 2, "MPIR_CVAR_NOLOCAL=1 MPIR_CVAR_CH4_NETMOD=ofi FI_PROVIDER=tcp VENV/mpich/bin/mpirun -np 2 -bind-to core DIR/mpihello.mpich -x bcast"},
		{"mpich", "", 3, "VENV/mpich/bin/mpirun -np 3 DIR/mpihello.mpich -x bcast"},
		{"impi", "", 3, "I_MPI_ROOT=VENV/impi CCL_ROOT=VENV/impi CCL_LOG_LEVEL=error LD_LIBRARY_PATH=VENV/impi/lib VENV/impi/bin/mpirun -np 3 DIR/mpihello.impi -x bcast"},
	} {
		b.Transport = tt.transport
		here, absent := b.Enter(t.Context(), []string{tt.name}, hello)
		if len(here) != 1 {
			t.Errorf("%s is not here: %v", tt.name, absent)
			continue
		}
		want := strings.NewReplacer("VENV", b.Venvs, "DIR", b.dir).Replace(tt.want)
		if got := here[0].Start(tt.np, "bcast").String(); got != want || here[0].Name != tt.name ||
			here[0].Version != "5.0.11" {
			t.Errorf("%s %s: got  %s\nwant %s", here[0].Name, here[0].Version, got, want)
		}
	}
	b.Transport = ""
	_, absent := b.Enter(t.Context(), []string{"oneccl", UCX}, hello)
	if len(absent) != 2 || !strings.Contains(absent[0], "but not its compiler VENV/impi/bin/mpigxx (make peers)") ||
		!strings.Contains(absent[1], "want -transport ucx:NAMES") {
		t.Errorf("absent: %q", absent)
	}
}

// A program that is installed runs where there is the binary interface that it was linked with.
func TestInstalledProgramsRunOnOpenMPIsInterface(t *testing.T) {
	processors = 2
	b := opened(t)
	b.Transport = "tcp"
	b.Gompirun = filepath.Join(b.Venvs, "gompirun")
	for _, path := range []string{b.Gompirun, filepath.Join(b.Venvs, "mpicc.openmpi"),
		filepath.Join(b.Venvs, "mpicc.mpich"), filepath.Join(b.Venvs, "openmpi/lib/libmpi.so.40")} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
			os.WriteFile(path, []byte("#!/bin/sh\necho gompirun 0.7\n"), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", b.Venvs+":"+os.Getenv("PATH"))
	here, absent := b.Enter(t.Context(), []string{"gompi-openmpi", "gompi-mpich", "openmpi", "mpich"},
		Program{Installed: "/usr/bin/lmp", Args: []string{"-x"}})
	if len(here) != 2 || !slices.Equal(absent,
		[]string{"gompi-mpich: there is no such program for it", "mpich: there is no such program for it"}) {
		t.Fatalf("here %v, absent %q", runner.Names(here), absent)
	}
	for i, want := range []string{
		"GOMPI_TRANSPORT=tcp VENV/gompirun -np 2 -mpi-lib gompi /usr/bin/lmp -x bcast",
		"PMIX_MCA_psec=native OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self LD_LIBRARY_PATH=VENV/openmpi/lib VENV/openmpi/bin/mpirun --allow-run-as-root -np 2 --bind-to core /usr/bin/lmp -x bcast",
	} {
		if got, want := here[i].Start(2, "bcast").String(), strings.ReplaceAll(want, "VENV", b.Venvs); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	here, absent = b.Enter(t.Context(), OnGompi, Program{C: "mpihello.c"})
	if len(here) != 2 || here[1].Start(4).String() != "GOMPI_TRANSPORT=tcp "+b.Gompirun+" -np 4 -mpi-lib gompi "+
		filepath.Join(b.dir, "mpihello.gompi-mpich") {
		t.Errorf("our own programs: %v, absent %q", here, absent)
	}
}

func TestGompiIsStartedByGompirun(t *testing.T) {
	b := &Bench{Gompirun: "gompirun", Transport: "ucx:tcp"}
	if got, want := b.Gompi([]string{"-q"}, "prog", "run").Start(2, "bw").String(),
		"GOMPI_TRANSPORT=ucx:tcp gompirun -np 2 -H 127.0.0.1,127.0.0.2 -q prog run bw"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestPeersAreNamedOnceAndKnown(t *testing.T) {
	if got, err := Parse("mpich,torchrun-c10d,gloo", Torchruns...); err != nil ||
		!slices.Equal(got, []string{"mpich", "torchrun-c10d", "gloo"}) {
		t.Errorf("got %v, %v", got, err)
	}
	for list, want := range map[string]string{"mvapich": `"mvapich": want some of gompi-openmpi,gompi-mpich,openmpi,openmpi-debian,`, "mpich,gloo,mpich": "mpich is named twice"} {
		if _, err := Parse(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", list, err, want)
		}
	}
}

func TestAPeerThatIsNotHereSaysWhatInstallsIt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	b := &Bench{Venvs: "/nowhere", Python: "/nowhere/python"}
	_, absent := b.Enter(t.Context(), []string{"openmpi", "mpich-debian", Gloo},
		Program{C: "mpibench.c", Python: "torchbench.py"})
	want := []string{"openmpi: not installed (make peers)",
		"mpich-debian: not installed (apt-get install mpich libmpich-dev)",
		"gloo: no PyTorch here (make torch2 ONLY=build; Debian: apt-get install python3-torch)"}
	if !slices.Equal(absent, want) {
		t.Errorf("got %q, want %q", absent, want)
	}
}

// login makes a script that stands for ssh: it runs the command here, with sshd's variables of the
// connection.
func login(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	ssh := filepath.Join(dir, "ssh")
	script := "#!/bin/sh\nPATH=" + dir + ":$PATH SSH_CONNECTION='10.9.0.254 5000 10.9.0.'${3#host}' 22' HOST=$3 exec sh -c \"$4\"\n"
	ip := "#!/bin/sh\necho '2: eth7    inet 10.9.0.1/24'\n"
	for name, text := range map[string]string{"ssh": script, "ip": ip} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return []string{ssh, "-F", "a file"}
}

func TestHostsAreReachedAndHaveTheirFiles(t *testing.T) {
	b := opened(t)
	if err := b.On(t.Context(), []string{"host1", "host2"}, login(t), []int{3}); err != nil {
		t.Fatal(err)
	}
	h := b.Hosts
	if h.Here != "10.9.0.254" || h.Addrs[1] != "10.9.0.2" || h.Iface != "eth7" || h.Subnet != "10.9.0.0/24" {
		t.Errorf("got %+v", h)
	}
	for dialect, want := range map[string]string{withSlots: "host1 slots=2\nhost2 slots=2\n",
		withColon: "host1:2\nhost2:2\n"} {
		if got, err := os.ReadFile(h.File(3, dialect)); err != nil || string(got) != want {
			t.Errorf("hostfile %q, %v; want %q", got, err, want)
		}
	}
	out, err := h.On(1, "sh", "-c", `echo "$HOST: it's me"`).Run(t.Context(), time.Minute)
	if err != nil || string(out.Stdout) != "host2: it's me\n" {
		t.Errorf("on host2: %q, %v", out.Stdout, err)
	}
	again := runner.Command{Args: []string{h.Login(), "host1", "echo $HOST"}}
	if out, err := again.Run(t.Context(), time.Minute); err != nil || string(out.Stdout) != "host1\n" {
		t.Errorf("by the file for launchers: %q, %v", out.Stdout, err)
	}
	if out, err := h.Logins().Run(t.Context(), time.Minute); err != nil || len(out.Stdout) != 0 {
		t.Errorf("logins: %q, %v", out.Stdout, err)
	}
	if got, want := b.Gompi(nil, "hello").Start(3).String(),
		"gompirun -np 3 -hostfile "+h.File(3, withSlots)+" -rsh "+h.RSH()+" hello"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if j := b.Torchrun("torchrun-static", "python3", "2").Start(4); len(j) != 2 ||
		!strings.Contains(j[1].String(), "host2 env GLOO_SOCKET_IFNAME=eth7 python3 -m torch.distributed.run") ||
		!strings.Contains(j[1].String(), "--nproc_per_node 2 --node_rank 1 --master_addr 10.9.0.1") {
		t.Errorf("torchrun on hosts: %v", j)
	}
	here, absent := b.Enter(t.Context(), []string{"openmpi", "mpich"}, Program{C: "mpihello.c"})
	if len(here) != 2 || !strings.Contains(here[0].Start(3).String(), "OMPI_MCA_btl_tcp_if_include=10.9.0.0/24") ||
		!strings.Contains(here[1].Start(3).String(), " -localhost 10.9.0.254 ") {
		t.Errorf("on hosts: %v, %v", here, absent)
	}
}

// TestPeersDeliverWhatTheyShould runs our programs for the libraries that are here.
func TestPeersDeliverWhatTheyShould(t *testing.T) {
	stress.Long(t, "compiles and starts programs of MPI and of PyTorch")
	for _, name := range []string{"openmpi", "openmpi-debian", "mpich", "mpich-debian", "impi", "oneccl", Gloo, UCX} {
		t.Run(name, func(t *testing.T) {
			venvs, err := filepath.Abs("../../bin/peers")
			if err != nil {
				t.Fatal(err)
			}
			b := &Bench{Gompirun: gompirun(t), Venvs: venvs}
			if name == UCX {
				b.Transport = "ucx:posix,cma"
			}
			if err := b.Open(); err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			here, absent := b.Enter(t.Context(), []string{name}, Program{C: "mpibench.c", Python: "torchbench.py"})
			if len(here) != 1 {
				if strings.Contains(absent[0], "does not compile") {
					t.Error(absent)
				}
				t.Skip(absent)
			}
			ops := slices.DeleteFunc([]string{"latency", "irecv", "iprobe", "iprobe_found", "iprobe_recv", "bw",
				"barrier", "bcast", "reduce", "allreduce", "allgather", "reduce_scatter", "gather", "scatter",
				"alltoall", "scan"},
				func(op string) bool { return slices.Contains(here[0].Lacks, op) })
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			args := append([]string{"-format", "csv", "-type", "float32", "-redop", "sum", "-budget", "1ms", "-sizes",
				"8,8184"}, ops...)
			out, err := here[0].Start(2, args...).Run(ctx, 2*time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			rows, err := result.ReadCSV(out.Stdout)
			want := 2 * len(ops)
			for _, noSize := range []string{"barrier", "iprobe", "iprobe_found"} {
				if slices.Contains(ops, noSize) {
					want--
				}
			}
			if err != nil || len(rows) != want {
				t.Fatalf("%d rows, error %v; want %d", len(rows), err, want)
			}
			for _, r := range rows {
				if r.NP != 2 || r.Iters < 5 || r.Median <= 0 || r.B2B <= 0 {
					t.Errorf("row %+v: want times of two ranks", r)
				}
			}
		})
	}
}

// TestTheSolverSolves runs cg.c, which checks its neighbours' data and the solution.
func TestTheSolverSolves(t *testing.T) {
	stress.Long(t, "compiles and starts programs of MPI")
	for _, name := range []string{"openmpi-debian", "mpich-debian"} {
		b := &Bench{}
		if err := b.Open(); err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		here, absent := b.Enter(t.Context(), []string{name}, Program{C: "cg.c", Args: []string{"4", "1"}})
		if len(here) != 1 {
			if strings.Contains(absent[0], "does not compile") {
				t.Error(absent)
			}
			t.Log(absent)
			continue
		}
		out, err := here[0].Start(2).Run(t.Context(), 2*time.Minute)
		if err != nil || !strings.Contains(string(out.Stdout), "solved, residual ") ||
			!strings.Contains(string(out.Stdout), "\nseconds=") {
			t.Errorf("%s: %q, %v", name, out.Stdout, err)
		}
	}
}

// gompirun builds the launcher.
func gompirun(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	build := runner.Command{Args: []string{"go", "build", "-C", "../..", "-o", dir, "./mpirun/gompirun"}}
	if _, err := build.Run(t.Context(), 5*time.Minute); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "gompirun")
}
