package boot

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

func TestGroupAllgatherGivesEverybodyEveryCard(t *testing.T) {
	for _, n := range []int{1, 2, 5, 4096} {
		synctest.Test(t, func(t *testing.T) {
			boots := Group(n)
			var wg sync.WaitGroup
			for i, b := range boots {
				wg.Go(func() {
					cards, err := b.Allgather(t.Context(), fmt.Appendf(nil, "card %d", i))
					if err != nil || len(cards) != n {
						t.Errorf("rank %d of %d: %d cards, %v", i, n, len(cards), err)
						return
					}
					for _, j := range []int{0, i, n - 1} {
						if want := fmt.Sprintf("card %d", j); string(cards[j]) != want {
							t.Errorf("rank %d has card %q from rank %d, want %q", i, cards[j], j, want)
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestGroupAllgatherFailsWhenARankCannotContribute(t *testing.T) {
	tests := []struct {
		name string
		end  func(*Member)
		want string
	}{
		{"died", func(m *Member) { m.Die("killed") }, "rank 1 died: killed"},
		{"left", func(m *Member) { m.Goodbye() }, "rank 1 left"},
		{"aborted", func(m *Member) { m.Abort(3, "no disk") }, "rank 1 aborted the job with status 3: no disk"},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			boots := Group(3)
			errs := make(chan error, 2)
			for _, i := range []int{0, 2} {
				go func() {
					_, err := boots[i].Allgather(t.Context(), nil)
					errs <- err
				}()
			}
			synctest.Wait()
			tt.end(boots[1].(*Member))
			for range 2 {
				if err := <-errs; err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
				}
			}
		})
	}
}

func TestGroupAllgatherEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		go cancel(why)
		if _, err := Group(2)[0].Allgather(ctx, nil); err != why {
			t.Errorf("error %v, want %v", err, why)
		}
	})
}

func TestGroupNewsReachesEveryMemberOnceAndInOrder(t *testing.T) {
	boots := Group(3)
	woken := make([]int, 3)
	for i, b := range boots {
		b.SetWake(func() { woken[i]++ })
	}
	cause := []byte("because")
	boots[2].Revoke(7, cause)
	cause[0] = 'x'
	boots[1].(*Member).Die("killed")
	boots[1].(*Member).Die("twice")
	for i, b := range boots {
		if woken[i] != 2 || !b.Pending() {
			t.Errorf("rank %d: woken %d times, pending %v; want 2, true", i, woken[i], b.Pending())
		}
		want := []Event{{Revoked, 2, 7, []byte("because")}, {Died, 1, 0, []byte("killed")}}
		if got := b.Events(); !reflect.DeepEqual(got, want) {
			t.Errorf("rank %d: events %v, want %v", i, got, want)
		}
		if b.Pending() || b.Events() != nil {
			t.Errorf("rank %d: news again after Events", i)
		}
	}
}

func TestGroupMemberThatSaidGoodbyeCannotDie(t *testing.T) {
	boots := Group(2)
	boots[0].Goodbye()
	boots[0].(*Member).Die("exit")
	if boots[1].Pending() {
		t.Errorf("events %v after a goodbye, want none", boots[1].Events())
	}
}

func TestAloneIsAJobOfOne(t *testing.T) {
	b := Alone()
	in := b.Info()
	if in.Rank != 0 || in.Size != 1 || in.LocalSize != 1 || in.Nodes != 1 || in.Host(0) == "" || in.Flight() != nil {
		t.Errorf("info %+v, want rank 0 of 1 on a named host, without flight recorder", in)
	}
	cards, err := b.Allgather(t.Context(), []byte("me"))
	if err != nil || len(cards) != 1 || string(cards[0]) != "me" {
		t.Errorf("allgather = %q, %v", cards, err)
	}
}

func TestStrandedNamesTheLauncherWhoseRanksCannotMeet(t *testing.T) {
	tests := []struct {
		env  map[string]string
		want string // "" for a job of one
	}{
		{nil, ""},
		{map[string]string{"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}, ""},
		{map[string]string{"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}, "Open MPI's mpirun as one of 4"},
		{map[string]string{"PMI_RANK": "1", "PMI_SIZE": "4"}, "mpiexec"},
		{map[string]string{"RANK": "0", "WORLD_SIZE": "4"}, "torchrun"},
		{map[string]string{"WORLD_SIZE": "4"}, ""},
		{map[string]string{"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "6"}, "srun"},
		{map[string]string{"SLURM_STEP_ID": "interactive", "SLURM_STEP_NUM_TASKS": "6"}, ""},
		{map[string]string{"SLURM_JOB_ID": "12", "SLURM_NTASKS": "6"}, ""},
		{map[string]string{"GOMPI_RANK": "1", "GOMPI_SIZE": "2", "RANK": "1", "WORLD_SIZE": "2"}, "children of a rank"},
	}
	for _, tt := range tests {
		err := stranded(func(name string) string { return tt.env[name] })
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: error %v, want %q", tt.env, err, tt.want)
		}
	}
}
