package mpi

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gompi/internal/calls"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/errs"
)

func init() {
	jobs["mistaken"] = mistaken
	jobs["mistaken of files"] = mistakenOfFiles
	jobs["mistaken of windows"] = mistakenOfWindows
}

// TestMistakenCalls: the ranks call different functions that consist of several collectives, which
// errors name, and not their parts.
func TestMistakenCalls(t *testing.T) {
	for _, job := range []string{"mistaken", "mistaken of files", "mistaken of windows"} {
		for _, transport := range []string{"", "tcp"} {
			t.Run(job+" "+transport, func(t *testing.T) {
				t.Parallel()
				ranks(t, 2, job, "GOMPI_TRANSPORT="+transport, "TMPDIR="+t.TempDir())
			})
		}
	}
}

func TestFunctionsOfSeveralCollectivesAreMPIs(t *testing.T) {
	for name := range calls.Functions {
		if name != "MPI_Finalize" && !slices.ContainsFunc(functions[:],
			func(f function) bool { return f.name == name }) {
			t.Errorf("there is no function %s", name)
		}
	}
}

// A mistake is a function of MPI that one rank calls alone, on an object of all.
type mistake struct {
	called string
	call   func(object abi.Handle) error
}

const noInfo = abi.Handle(abi.InfoNull)

func mistaken() error {
	var h abi.Handle
	var at int
	none, dir, words := abi.Unweighted, os.TempDir(), make([]int32, 2)
	all := []mistake{
		{"MPI_Barrier()", func(c abi.Handle) error { return do("Barrier", c) }},
		{"MPI_Comm_dup()", func(c abi.Handle) error { return do("Comm_dup", c, &h) }},
		{"MPI_Win_create()", func(c abi.Handle) error { return do("Win_create", 0, 0, 1, noInfo, c, &h) }},
		{"MPI_Allreduce(1 MPI_INT, MPI_SUM)", func(c abi.Handle) error {
			return do("Allreduce", addr(words), addr(words[1:]), 1, intHandle, sumHandle, c)
		}},
		{"MPI_File_open()", func(c abi.Handle) error {
			return do("File_open", c, text(filepath.Join(dir, "a")), 2+32, noInfo, &h)
		}},
		{"MPI_Comm_split()", func(c abi.Handle) error { return do("Comm_split", c, 0, 0, &h) }},
		{"MPI_Cart_create()", func(c abi.Handle) error { return do("Cart_create", c, 1, array(2), array(0), 0, &h) }},
		{"MPI_Comm_split_type()", func(c abi.Handle) error {
			return do("Comm_split_type", c, abi.SplitShared, 0, noInfo, &h)
		}},
		{"MPI_Graph_create()", func(c abi.Handle) error {
			return do("Graph_create", c, 2, array(1, 2), array(1, 0), 0, &h)
		}},
		{"MPI_Intercomm_create()", func(c abi.Handle) error {
			return do("Intercomm_create", c, 1-comms.World.P2P.Rank(), world0, 0, 5, &h)
		}},
		{"MPI_Bcast(4 bytes, root ", func(c abi.Handle) error {
			return do("Bcast", addr(words), 1, intHandle, 1-comms.World.P2P.Rank(), c)
		}},
		{"MPI_Win_allocate()", func(c abi.Handle) error { return do("Win_allocate", 8, 1, noInfo, c, &at, &h) }},
		{"MPI_Win_create_dynamic()", func(c abi.Handle) error { return do("Win_create_dynamic", noInfo, c, &h) }},
		{"MPI_Win_allocate_shared()", func(c abi.Handle) error {
			return do("Win_allocate_shared", 8, 1, noInfo, c, &at, &h)
		}},
		{"MPI_Dist_graph_create_adjacent()", func(c abi.Handle) error {
			return do("Dist_graph_create_adjacent", c, 0, 0, none, 0, 0, none, noInfo, 0, &h)
		}},
		{"MPI_Dist_graph_create()", func(c abi.Handle) error {
			return do("Dist_graph_create", c, 0, 0, 0, 0, none, noInfo, 0, &h)
		}},
		{"MPI_Bcast_init()", func(c abi.Handle) error {
			return do("Bcast_init", addr(words), 1, intHandle, 0, c, noInfo, &h)
		}},
		{"MPI_Barrier_init()", func(c abi.Handle) error { return do("Barrier_init", c, noInfo, &h) }},
	}
	return eachMistake(all, func(c *abi.Handle) error { return do("Comm_dup", world0, c) })
}

// mistakenOfFiles has files with views of single integers, so that accesses of all are exchanges.
func mistakenOfFiles() error {
	var view abi.Handle
	words, dir, opened := make([]int32, 2), os.TempDir(), 0
	read := func(name string) mistake {
		return mistake{"MPI_" + name + "()", func(f abi.Handle) error {
			return do(name, f, addr(words), 1, intHandle, nil)
		}}
	}
	all := []mistake{
		{"MPI_File_close()", func(f abi.Handle) error { return do("File_close", &f) }},
		{"MPI_File_set_size()", func(f abi.Handle) error { return do("File_set_size", f, 5) }},
		{"MPI_File_preallocate()", func(f abi.Handle) error { return do("File_preallocate", f, 5) }},
		{"MPI_File_sync()", func(f abi.Handle) error { return do("File_sync", f) }},
		{"MPI_File_set_info()", func(f abi.Handle) error { return do("File_set_info", f, noInfo) }},
		{"MPI_File_set_view()", func(f abi.Handle) error {
			return do("File_set_view", f, 0, intHandle, view, text("native"), noInfo)
		}},
		{"MPI_File_set_atomicity()", func(f abi.Handle) error { return do("File_set_atomicity", f, 1) }},
		{"MPI_File_seek_shared()", func(f abi.Handle) error { return do("File_seek_shared", f, 0, 403) }},
		read("File_read_all"), read("File_write_all"), read("File_read_ordered"), read("File_write_ordered"),
		{"MPI_File_read_at_all()", func(f abi.Handle) error {
			return do("File_read_at_all", f, 0, addr(words), 1, intHandle, nil)
		}},
		{"MPI_File_write_ordered_begin()", func(f abi.Handle) error {
			return do("File_write_ordered_begin", f, addr(words), 1, intHandle)
		}},
		{"MPI_File_write_at_all()", func(f abi.Handle) error {
			return do("File_write_at_all", f, 0, addr(words), 1, intHandle, nil)
		}},
		{"MPI_File_read_ordered_begin()", func(f abi.Handle) error {
			return do("File_read_ordered_begin", f, addr(words), 1, intHandle)
		}},
	}
	err := errors.Join(do("Type_vector", 1, 1, 2, intHandle, &view), do("Type_create_resized", view, 0, 8, &view),
		do("Type_commit", &view))
	return errors.Join(err, eachMistake(all, func(f *abi.Handle) error {
		opened++
		if err := do("File_open", world0, text(filepath.Join(dir, fmt.Sprint(opened))), 2+32, noInfo, f); err != nil {
			return err
		}
		return do("File_set_view", *f, 0, intHandle, view, text("native"), noInfo)
	}))
}

func mistakenOfWindows() error {
	return eachMistake([]mistake{
		{"MPI_Win_fence()", func(w abi.Handle) error { return do("Win_fence", 0, w) }},
		{"MPI_Win_free()", func(w abi.Handle) error { return do("Win_free", &w) }},
	}, func(w *abi.Handle) error { return do("Win_create", 0, 0, 1, noInfo, world0, w) })
}

// eachMistake has each two neighbors of a list be called by two ranks, on an object that is made.
func eachMistake(all []mistake, make func(*abi.Handle) error) error {
	for i := range all {
		var object abi.Handle
		if err := make(&object); err != nil {
			return err
		}
		two := []mistake{all[i], all[(i+1)%len(all)]}
		if err := namesBoth(two[comms.World.P2P.Rank()].call(object), two[0].called, two[1].called); err != nil {
			return err
		}
	}
	return nil
}

// namesBoth returns an error unless err names the calls of ranks 0 and 1.
func namesBoth(err error, calls ...string) error {
	if err == nil {
		return fmt.Errorf("%s is taken for %s", calls[0], calls[1])
	}
	text := errs.Explain(err)
	for rank, call := range calls {
		if want := fmt.Sprintf("rank %d called %s", rank, call); !strings.Contains(text, want) {
			return fmt.Errorf("%s: want %q", text, want)
		}
	}
	return nil
}
